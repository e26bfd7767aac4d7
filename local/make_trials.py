#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make the enrolment and trial sets of an evaluation, by the rules of the VoicePrivacy challenges.

DATA is a data directory with the evaluation speech (wav.scp utt2spk spk2gender ...). For E = OUT
the data directories E_enrolls (with `enrolls`), E_trials_f and E_trials_m (with `trials`, lines
`<enrolled speaker> <utterance> target|nontarget`) are written, and E_trials_mixed, every speaker
with every utterance; with `--genders m` only E_trials_m.

By the rules: each speaker who has enough speech is enrolled with --enrol-utts utterances, the
others have trial utterances only; no utterance is in both roles, nor, with --sessions, any
session; the trials of a gender are all its enrolled speakers times all its trial utterances. What
is drawn depends on the seed and on the ids, not on their order.

With --enrolled DIR, a data directory with `enrolls`, such as the enrolment of another evaluation:
its utterances, which DATA must hold, are the enrolment, and all others of DATA the trials.

With --official DIR: the lists in DIR/<name of E>_{enrolls,trials_f,trials_m,trials_mixed}, cut to
the audio that is in DATA; how much of them is left is printed. Where the mixed trials are not
there, or are there alone, the others are made of what is there.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from local.protocols import trials as listing
from utils.cli import UserError, positive
from utils.commands import program
from utils.datadir import DataDir, Trial, load_data_dir, select, write_data_dir
from utils.options import DataFolder, Seed
from utils.tables import invert, read_map


def official_lists(data: DataDir, folder: Path, evaluation: str) -> listing.Lists:
    """The official lists cut to the utterances of `data`; prints how much of them is left."""
    whole, utt2spk, spk2gender = listing.read_official(folder, evaluation)
    listing.check_agreement("the speaker", data.utt2spk, utt2spk)
    listing.check_agreement("the gender", data.spk2gender or {}, spk2gender)
    lists = listing.cut_lists(whole, data.utt2spk)
    print(f"official lists {folder / evaluation}_* cut to the audio in {data.path}:")
    print_counts((whole, utt2spk), (lists, utt2spk))
    return lists


def print_counts(*states: tuple[listing.Lists, Mapping[str, str]]) -> None:
    """Print the sizes of lists, with a column for each gender; of several states of the lists, each
    cell shows the sizes before and after."""
    found = [{g: listing.count_lists(lists, g, spk) for g in lists.trials} for lists, spk in states]
    for name in next(iter(found[0].values())):
        cells = (f"{g} {' -> '.join(str(one[g][name]) for one in found):<15}" for g in found[0])
        print(f"  {name:<20}  " + "  ".join(cells).rstrip())


def ruled_lists(data: DataDir, rules: listing.Rules) -> listing.Lists:
    """Lists by the rules; prints what they hold and who has trial utterances only."""
    lists = listing.make_lists(data.utt2spk, data.spk2gender or {}, rules)
    print(
        f"lists for {data.path}: seed {rules.seed}, {rules.enrol_utts} enrolment utterances a "
        "speaker"
    )
    print_counts((lists, data.utt2spk))
    if lists.trial_only:
        print(f"  {len(lists.trial_only)} speakers are not enrolled and have trials only:")
        for speaker, reason in lists.trial_only.items():
            print(f"    {speaker}: {reason}")
    return lists


def enrolled_lists(data: DataDir, folder: Path, genders: Sequence[str]) -> listing.Lists:
    """Lists with the enrolment of `folder`; prints what they hold."""
    home = load_data_dir(folder, need=("utt2spk", "enrolls"))
    enrolment = invert({utt: home.utt2spk[utt] for utt in home.enrolls or []})
    lists = listing.lists_of_enrolled(data.utt2spk, data.spk2gender or {}, enrolment, genders)
    print(f"lists for {data.path}: enrolment of {folder}")
    print_counts((lists, data.utt2spk))
    return lists


def write_sets(data: DataDir, out: Path, lists: listing.Lists) -> None:
    """Write the data directories of the evaluation: enrolment, and trials of each list."""
    enrol = [utt for utts in lists.enrolment.values() for utt in utts]
    _write(data, Path(f"{out}_enrolls"), enrol, enrolls=dict.fromkeys(enrol, ""))
    for gender, trials in lists.trials.items():
        _write(data, Path(f"{out}_trials_{gender}"), lists.trial_utts(gender), trials)


def _write(
    data: DataDir,
    out: Path,
    utts: Sequence[str],
    trials: Sequence[Trial] | None = None,
    **more: Mapping[str, object],
) -> None:
    tables: dict[str, Mapping[str, object]] = {**select(data, utts)}
    for name in ("enrolls", "trials"):
        tables.pop(name, None)
    write_data_dir(out, tables | more, trials)
    utt2spk = tables["utt2spk"]
    print(f"{out}: {len({*utt2spk.values()})} speakers, {len(utt2spk)} utterances written")


def split_off_rest(data: DataDir, per_gender: int, rules: listing.Rules) -> tuple[DataDir, DataDir]:
    """(evaluation speakers, all others); says who has too little speech to be evaluated."""
    utt2spk = data.utt2spk
    chosen, unable = listing.choose_evaluation(utt2spk, data.spk2gender or {}, per_gender, rules)
    if unable:
        print(f"{len(unable)} speakers have too few utterances to be evaluated: {' '.join(unable)}")
    evaluated, others = (
        DataDir(data.path, select(data, [u for u, s in utt2spk.items() if (s in chosen) == wanted]))
        for wanted in (True, False)
    )
    if not others.utt2spk:
        raise UserError(
            f"--speakers {per_gender}: no speaker is left to train with (--rest); "
            "evaluate fewer, or train on another corpus (egs/README.md)"
        )
    return evaluated, others


@program
def main(
    data_dir: DataFolder,
    out: Annotated[Path, "The path and name of the evaluation, E"],
    *, seed: Seed = 0,
    enrol_utts: Annotated[
        int, "The number of enrolment utterances of a speaker", "N", positive,
    ] = 5,
    genders: Annotated[
        tuple[str, ...], "The genders whose trials are made; a corpus of one gender says which. "
        "mixed has everybody, also people of another sex",
        "G", (*listing.GENDERS, listing.MIXED),
    ] = listing.GENDERS,
    sessions: Annotated[
        Path | None, "The table of each utterance's session; enrolment and trials are of "
        "different sessions", "UTT2SESSION",
    ] = None,
    speakers: Annotated[
        int | None, "The number of speakers of each gender who are evaluated, drawn by the seed; "
        "needs --rest", "N", positive,
    ] = None,
    rest: Annotated[
        Path | None, "The data directory for the speakers who are not evaluated", "DIR",
    ] = None,
    enrolled: Annotated[
        Path | None, "The data directory that says who is enrolled with what", "DIR",
    ] = None,
    official: Annotated[Path | None, "The folder of official lists", "DIR"] = None,
) -> None:  # fmt: skip
    if bool(speakers) != bool(rest):
        raise UserError("--speakers and --rest go together: who is not evaluated goes to --rest")
    if enrolled and (sessions or speakers):
        raise UserError("--enrolled says who is enrolled: leave out the options for it")
    if official and (sessions or speakers or enrolled):
        raise UserError("--official says who is enrolled and tried: leave out the options for it")
    data = load_data_dir(data_dir, need=("wav.scp", "utt2spk", "spk2gender"))
    if official:
        lists = official_lists(data, official, out.name)
    elif enrolled:
        lists = enrolled_lists(data, enrolled, genders)
    else:
        session_of = read_map(sessions) if sessions else {}
        if sessions and not session_of:
            raise UserError(f"{sessions}: is empty; it names each utterance's session")
        rules = listing.Rules(enrol_utts, genders, seed, session_of)
        if speakers:
            data, others = split_off_rest(data, speakers, rules)
        lists = ruled_lists(data, rules)
    lists = listing.with_both(lists, data.utt2spk, data.spk2gender or {})
    listing.check_lists(lists)
    if unused := data.utt2spk.keys() - lists.utts:
        print(f"{len(unused)} of {len(data.utt2spk)} utterances are in no list")
    write_sets(data, out, lists)
    if rest:
        _write(others, rest, list(others.utt2spk))
