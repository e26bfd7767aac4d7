"""Enrolment and trial lists in the form of the VoicePrivacy challenges, or cut from theirs.

The rules, as inferred from the official LibriSpeech lists of 2020 (Champion et al. 2021, Table 1):
every speaker of the evaluation set has trial utterances; speakers with enough speech are enrolled
too, with utterances of one session (in LibriSpeech: one chapter) of which no utterance is in a
trial; the trials of a gender are the full product of its enrolment speakers and all its trial
utterances. Mixed trials (2026) follow the same rules for everybody together, people of another sex
included, who are in no list of a gender.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from utils.cli import UserError
from utils.datachecks import LABELS, OTHER
from utils.datadir import DataDir, Trial, load_data_dir
from utils.seeds import derive_seed
from utils.tables import invert, read_lines, read_map, sort_ids

GENDERS = ("f", "m")
MIXED = "mixed"  # the trials of everybody together
TARGET, NONTARGET = LABELS
Table = Mapping[str, str]
Groups = Mapping[str, Sequence[str]]  # speaker -> utterances
Split = tuple[list[str], list[str]]  # enrolment and trial utterances


@dataclass(frozen=True)
class Rules:
    """Rules for making lists.

    enrol_utts: enrolment utterances of each enrolled speaker, who has one or more beside them.
    genders: of the trials; a speaker of another one is an error, unless MIXED is among them.
    sessions: by utterance.
    """

    enrol_utts: int = 5
    genders: Sequence[str] = GENDERS
    seed: int = 0
    sessions: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Lists:
    """Lists of one evaluation.

    enrolment: speaker -> utterances. trials: gender, or MIXED -> (speaker, utterance, label).
    trial_only: speakers who are not enrolled -> reason.
    """

    enrolment: Groups
    trials: Mapping[str, Sequence[Trial]]
    trial_only: Table = field(default_factory=dict)

    @property
    def utts(self) -> set[str]:
        """Utterances of all lists."""
        tried = (utt for rows in self.trials.values() for _, utt, _ in rows)
        return {*chain(*self.enrolment.values(), tried)}

    def enrolled(self, gender: str) -> list[str]:
        """Enrolment speakers of a gender: those in its trials."""
        return sort_ids({speaker for speaker, _, _ in self.trials[gender]})

    def trial_utts(self, gender: str) -> list[str]:
        """Trial utterances of a gender."""
        return sort_ids({utt for _, utt, _ in self.trials[gender]})


def count_lists(lists: Lists, gender: str, utt2spk: Table) -> dict[str, int]:
    """Count speakers, utterances and trials of one gender; `utt2spk` has all trial utterances."""
    enrolled, utts = lists.enrolled(gender), lists.trial_utts(gender)
    target = sum(label == TARGET for _, _, label in lists.trials[gender])
    return {
        "enrolment speakers": len(enrolled),
        "enrolment utterances": sum(len(lists.enrolment[speaker]) for speaker in enrolled),
        "trial speakers": len({utt2spk[utt] for utt in utts}),
        "trial utterances": len(utts),
        "target trials": target,
        "nontarget trials": len(lists.trials[gender]) - target,
    }


def by_hash(items: Iterable[str], seed: int, purpose: str, *context: str) -> list[str]:
    """Shuffle the items by the seed and each item, independent of the others."""
    return sorted(items, key=lambda item: (derive_seed(seed, purpose, *context, item), item))


def full_product(enrolled: Iterable[str], utts: Iterable[str], utt2spk: Table) -> list[Trial]:
    """Trials of every speaker with every utterance."""
    listed = sort_ids(utts)
    return [(spk, utt, label_of(spk, utt, utt2spk)) for spk in sort_ids(enrolled) for utt in listed]


def label_of(speaker: str, utt: str, utt2spk: Table) -> str:
    """Label of the trial of a speaker and an utterance: target or nontarget."""
    return TARGET if utt2spk[utt] == speaker else NONTARGET


def split_speaker(speaker: str, utts: Sequence[str], rules: Rules) -> Split | str:
    """Choose (enrolment, trial) utterances of one speaker, or the reason for not enrolling them.

    Without `sessions` any utterance may be drawn. Where they are known, one that is long enough and
    leaves enough others is drawn for enrolment, and the rest of it is not used. UserError for an
    utterance that they lack.
    """
    in_session: dict[str, list[str]] = {}
    for utt in utts:
        in_session.setdefault(rules.sessions.get(utt, ""), []).append(utt)
    if "" in in_session and rules.sessions:
        raise UserError(f"{in_session[''][0]}: has no session; add it to the table of sessions")
    trial = None
    if "" in in_session:
        if len(utts) <= rules.enrol_utts:
            return f"{len(utts)} utterances, {rules.enrol_utts + 1} are needed"
    else:
        long_enough = [
            session
            for session, own in in_session.items()
            if rules.enrol_utts <= len(own) < len(utts)
        ]
        if not long_enough:
            sizes = "+".join(str(len(own)) for own in in_session.values())
            return (
                f"{len(in_session)} session(s) of {sizes} utterances, but one of "
                f"{rules.enrol_utts} or more and 1 or more in others are needed"
            )
        session = by_hash(long_enough, rules.seed, "enrolment-session", speaker)[0]
        utts = in_session.pop(session)
        trial = [*chain(*in_session.values())]
    ranked = by_hash(utts, rules.seed, "enrolment-utterances", speaker)
    rest = ranked[rules.enrol_utts :] if trial is None else trial
    return sort_ids(ranked[: rules.enrol_utts]), sort_ids(rest)


def make_lists(utt2spk: Table, spk2gender: Table, rules: Rules) -> Lists:
    """Make lists by the rules at the head of this module.

    The choice for a speaker depends on the seed and that speaker's own utterances and sessions: not
    on any order.
    """
    spk2utt = invert(utt2spk)
    for speaker in spk2utt:
        if not {spk2gender[speaker], MIXED} & {*rules.genders}:
            raise UserError(
                f"{speaker}: the gender is {spk2gender[speaker]}, but lists are made for "
                f"{' '.join(rules.genders)} only (--genders; {MIXED} has everybody)"
            )
    enrolment: dict[str, list[str]] = {}
    trial_only: dict[str, str] = {}
    tried: list[str] = []
    for speaker, utts in spk2utt.items():
        split = split_speaker(speaker, utts, rules)
        if isinstance(split, str):
            trial_only[speaker] = split
            tried += utts
        else:
            enrolment[speaker], own = split
            tried += own
    lists = lists_of(utt2spk, spk2gender, enrolment, tried, rules.genders)
    return replace(lists, trial_only=trial_only)


def lists_of(
    utt2spk: Table,
    spk2gender: Table,
    enrolment: Groups,
    tried: Iterable[str],
    genders: Iterable[str],
) -> Lists:
    """Lists with the full product of each gender."""
    every = full_product(enrolment, tried, utt2spk)
    return Lists(enrolment, {
        g: every if g == MIXED else _among(every, g, utt2spk, spk2gender) for g in genders
    })  # fmt: skip


def _among(trials: Iterable[Trial], gender: str, utt2spk: Table, spk2gender: Table) -> list[Trial]:
    """Trials of which both sides have a gender."""
    return [row for row in trials if spk2gender[row[0]] == gender == spk2gender[utt2spk[row[1]]]]


def lists_of_enrolled(
    utt2spk: Table, spk2gender: Table, enrolment: Groups, genders: Sequence[str] = GENDERS
) -> Lists:
    """Make lists with a given enrolment (speaker -> utterances): all else of `utt2spk` is tried.

    UserError where an enrolment utterance is not in `utt2spk`, or belongs to another speaker there.
    """
    for speaker, utts in enrolment.items():
        for utt in utts:
            if utt2spk.get(utt) != speaker:
                who = f"spoken by {utt2spk[utt]}" if utt in utt2spk else "not in the data"
                raise UserError(f"{utt}: enrolled for {speaker}, but {who}")
    enrolled = {*chain(*enrolment.values())}
    tried = [utt for utt in utt2spk if utt not in enrolled]
    return lists_of(utt2spk, spk2gender, enrolment, tried, genders)


def choose_evaluation(
    utt2spk: Table, spk2gender: Table, per_gender: int, rules: Rules
) -> tuple[set[str], list[str]]:
    """Choose speakers to evaluate, so many of each gender; also returns those with too few
    utterances.

    With mixed trials as many people of another sex are added, as far as there are so many; mixed
    trials alone have all sexes that there are. Seeded and independent of order. Raises UserError
    with both numbers when a gender has fewer.
    """
    splits = {spk: split_speaker(spk, utts, rules) for spk, utts in invert(utt2spk).items()}
    unable = [spk for spk, split in splits.items() if isinstance(split, str)]
    chosen: set[str] = set()
    genders = [OTHER if gender == MIXED else gender for gender in rules.genders]
    for gender in genders if genders != [OTHER] else sort_ids({*spk2gender.values()}):
        able = [spk for spk in splits.keys() - unable if spk2gender[spk] == gender]
        if len(able) < per_gender and gender != OTHER:
            raise UserError(
                f"{per_gender} speakers of gender {gender} are wanted, but only {len(able)} "
                "have enough utterances; ask for fewer, two at least, or leave the gender out"
            )
        chosen.update(by_hash(able, rules.seed, "evaluation-speakers")[:per_gender])
    return chosen, unable


def with_both(lists: Lists, utt2spk: Table, spk2gender: Table) -> Lists:
    """Add the missing lists of f, m and MIXED: mixed trials are every speaker with every utterance,
    and those of a gender are the mixed ones in which both sides have it. Lists of one gender are
    unchanged."""
    trials = dict(lists.trials)
    if MIXED not in trials and all(gender in trials for gender in GENDERS):
        utts = {utt for gender in GENDERS for utt in lists.trial_utts(gender)}
        trials[MIXED] = full_product(lists.enrolment, utts, utt2spk)
    for gender in GENDERS if MIXED in trials else ():
        if own := _among(trials[MIXED], gender, utt2spk, spk2gender):
            trials.setdefault(gender, own)
    return replace(lists, trials=trials)


def read_official(folder: Path, evaluation: str) -> tuple[Lists, dict[str, str], dict[str, str]]:
    """Read (lists, utt2spk, spk2gender) of `folder/<evaluation>_{enrolls,trials_f,trials_m}`, or of
    `..._{enrolls,trials_mixed}`, or of all four; or of `folder/<evaluation>` with the files
    `enrolls`, `trials_f` and `trials_m`, as the organisers' server has them.

    Raises UserError for a missing table, or a trial that contradicts enrolment, speaker or gender.
    """
    if (enrolled := _open_list(folder, evaluation, "enrolls")) is None:
        there = sorted(path.name for path in folder.glob("*_enrolls"))
        raise UserError(
            f"{folder / evaluation}_enrolls: no such folder; {folder} has "
            f"{', '.join(there) or 'no *_enrolls'}"
        )
    enrolment: dict[str, list[str]] = {}
    for utt in enrolled.enrolls or []:
        enrolment.setdefault(enrolled.utt2spk[utt], []).append(utt)
    utt2spk, spk2gender = dict(enrolled.utt2spk), dict(enrolled.spk2gender or {})
    trials: dict[str, list[Trial]] = {}
    mixed = _open_list(folder, evaluation, f"trials_{MIXED}")
    for gender in (*GENDERS, MIXED):
        data = mixed if gender == MIXED else _open_list(folder, evaluation, f"trials_{gender}")
        if data is None and (gender == MIXED or mixed):
            continue
        place = folder / f"{evaluation}_trials_{gender}"
        data = data or load_data_dir(place)  # which says what is missing
        _check_official(data, gender, enrolment, spk2gender)
        new = sorted(set(data.utt2spk.values()) - set(utt2spk.values()))
        if new and len(trials) == len(GENDERS):
            raise UserError(
                f"{place / 'utt2spk'}: speaker {new[0]} is in the mixed trials, but not in those "
                "of a gender"
            )
        trials[gender] = data.trials or []
        utt2spk |= data.utt2spk
        spk2gender |= data.spk2gender or {}
    return Lists(enrolment, trials), utt2spk, spk2gender


def _open_list(folder: Path, evaluation: str, part: str) -> DataDir | None:
    """A data directory of the enrolment or of trials; None where it is missing. That of
    vctk_test_common_trials_f is vctk_test_trials_f_common, or made from the server's form,
    `vctk_test/trials_f_common_mic2`."""
    home, table = folder / evaluation.removesuffix("_common"), part.partition("_")[0]
    common = "_common" if home.name != evaluation and table == "trials" else ""
    for place in (folder / f"{evaluation}_{part}", folder / f"{home.name}_{part}{common}"):
        if place.is_dir():
            if part == f"trials_{MIXED}":
                _check_edition(place)
            return load_data_dir(place, need=("utt2spk", "spk2gender", table))
    files = [home / f"{part}{common}{microphone}" for microphone in ("", "_mic2")]
    if (listed := next(filter(Path.is_file, files), None)) is None:
        return None
    whole = load_data_dir(home, need=("utt2spk", "spk2gender"))
    rows = [line.split() for _, line in read_lines(listed)]
    fields = 3 if table == "trials" else 1
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != fields]:
        raise UserError(f"{listed}:{wrong[0]}: not {fields} fields; is this a list of {part}?")
    own = {row[len(row) // 2] for row in rows}
    if strange := sorted(own - whole.utt2spk.keys()):
        raise UserError(f"{listed}: {strange[0]} is not in {home / 'utt2spk'}")
    utt2spk = {utt: spk for utt, spk in whole.utt2spk.items() if utt in own}
    genders = {spk: (whole.spk2gender or {})[spk] for spk in utt2spk.values()}
    found = {" ".join(row[:2]): " ".join(row[2:]) for row in rows}
    return DataDir(place, {"utt2spk": utt2spk, "spk2gender": genders, table: found})


def _check_edition(place: Path) -> None:
    """Raise a UserError for the mixed list of VoicePrivacy 2026 before September 2026, which its
    script made with women and men interchanged."""
    names = ("utt2spk", "spk2gender", "trials")
    if not all((place / name).is_file() for name in names):
        return
    utt2spk, genders = (read_map(place / name) for name in names[:2])
    rows = [line.split() for _, line in read_lines(place / "trials")]
    pairs = {(r[0], r[1]) for r in rows if len(r) == 3 and r[0] in genders and r[1] in utt2spk}
    wrong = sum(tuple(r[:2]) in pairs and r[2] != label_of(r[0], r[1], utt2spk) for r in rows)
    crossing = any(genders[spk] != genders.get(utt2spk[utt]) for spk, utt in pairs)
    if wrong and len(pairs) < len(rows) and not crossing:
        raise UserError(
            f"{place / 'trials'}: is the list of VoicePrivacy 2026 before 1 September 2026, made "
            f"with women and men interchanged: {wrong} of {len(rows)} labels are wrong, only "
            f"{len(pairs)} pairs differ, none is of a woman and a man; take the list since then"
        )


def _check_official(data: DataDir, gender: str, enrolment: Groups, genders: Table) -> None:
    """Raise a UserError for a trial that contradicts the enrolment, the speakers or the gender."""
    path = data.path / "trials"
    for number, (speaker, utt, label) in enumerate(data.trials or [], start=1):
        trial = f"{path}:{number}: {speaker} {utt} {label}"
        if speaker not in enrolment:
            raise UserError(f"{trial}: speaker {speaker} has no enrolment utterance")
        if gender not in (genders[speaker], MIXED):
            raise UserError(f"{trial}: {speaker} is {genders[speaker]}, in the trials of {gender}")
        if label != label_of(speaker, utt, data.utt2spk):
            raise UserError(f"{trial}: but {utt} is spoken by {data.utt2spk[utt]}")
    for speaker, own in (data.spk2gender or {}).items():
        if gender not in (own, MIXED):
            raise UserError(
                f"{data.path / 'spk2gender'}: {speaker} is {own}, in the trials of {gender}"
            )


def cut_lists(lists: Lists, utts: Container[str]) -> Lists:
    """Remove missing utterances from the lists, and speakers left with none."""
    enrolment = {
        speaker: kept
        for speaker, own in lists.enrolment.items()
        if (kept := [utt for utt in own if utt in utts])
    }
    trials = {
        gender: [row for row in rows if row[0] in enrolment and row[1] in utts]
        for gender, rows in lists.trials.items()
    }
    return Lists(enrolment, trials, lists.trial_only)


def check_agreement(kind: str, ours: Table, theirs: Table) -> None:
    """Raise a UserError when the corpus and the official lists contradict each other on an id."""
    differ = [key for key in sort_ids(ours.keys() & theirs.keys()) if ours[key] != theirs[key]]
    if differ:
        first = differ[0]
        raise UserError(
            f"{first}: {kind} is {ours[first]} here, but {theirs[first]} in the official lists "
            f"({len(differ)} such ids); are these the lists of this corpus?"
        )


def check_lists(lists: Lists) -> None:
    """Raise a UserError unless each gender has both kinds of trials and no utterance two roles."""
    enrolled = {*chain(*lists.enrolment.values())}
    for gender in lists.trials:
        labels = {label for _, _, label in lists.trials[gender]}
        for label in (TARGET, NONTARGET):
            if label not in labels:
                raise UserError(
                    f"no {label} trial of gender {gender} is left ({len(lists.enrolled(gender))} "
                    f"enrolment speakers, {len(lists.trial_utts(gender))} trial utterances)"
                )
        both = [utt for utt in lists.trial_utts(gender) if utt in enrolled]
        if both:
            raise UserError(f"{both[0]}: in the enrolment and in a trial ({len(both)} utterances)")
