# SPDX-License-Identifier: Apache-2.0
"""Record of an attack: sets, draws, seeds and models, read from their folders."""

from dataclasses import dataclass
from pathlib import Path

from local.protocols.attackers import ALIGNED, ATTACKERS, UNPROTECTED, Attacker
from utils.cli import UserError
from utils.datadir import DataDir, load_data_dir, read_noted
from utils.jsonfiles import read_json_object
from utils.settings import read_settings
from utils.speakers import check_apart, read_training_speakers
from utils.tables import is_there

Json = dict[str, object]
SHARED_LEVELS = ("perm", "const", "position")  # enrolment and trials share draws by intention


@dataclass(frozen=True)
class Side:
    """Set of an attack. conf: conf.json of a protected one; None for original speech."""

    data: DataDir
    conf: Json | None

    @classmethod
    def read(cls, path: Path) -> "Side":
        """Read a data directory, original or of steps/anonymise.py."""
        conf = path / "conf.json"
        data = load_data_dir(path, need=("utt2spk",))
        if not is_there(conf):
            return cls(data, None)
        return cls(data, read_json_object(conf, "protect the set again"))

    def record(self) -> Json:
        """Name, size, and draw of the set."""
        found: Json = {
            "data": str(self.data.path),
            "protected": self.conf is not None,
            "n_speakers": len(self.data.spk2utt),
            "n_utterances": len(self.data.utt2spk),
        }
        if self.conf is not None:
            found |= {k: self.conf.get(k) for k in ("key_level", "is_random", "seed", "draw")}
        return found

    def draws(self) -> dict[str, set[tuple[str, str]]]:
        """Pairs (draw, key) of each speaker's utterances."""
        assert self.conf is not None
        found: dict[str, set[tuple[str, str]]] = {}
        run = str(self.conf.get("draw"))
        keys = read_noted(self.data.path / "pseudo.tsv", ("key",), self.data.utt2spk)
        for utt, (key,) in keys.items():
            found.setdefault(self.data.utt2spk[utt], set()).add((run, key))
        return found


def compare_draws(enrol: Side, trial: Side) -> Json:
    """Whether enrolment and trials of a speaker share their random draws.

    They may at levels perm, const and position, and where nothing is drawn. UserError where they do
    at utt or spk: the attacker would know more than stated.
    """
    if enrol.conf is None or trial.conf is None:
        return {"draws": "one side is original"}
    if None in (enrol.conf.get("is_random", False), trial.conf.get("is_random", False)):
        return {"draws": "not known: another program made the speech"}
    if not (enrol.conf.get("is_random") or trial.conf.get("is_random")):
        return {"draws": "nothing is drawn: equal"}
    mine, his = enrol.draws(), trial.draws()
    both = sorted(set(mine) & set(his))
    sharing = [speaker for speaker in both if mine[speaker] & his[speaker]]
    level = str(trial.conf.get("key_level"))
    if sharing and level not in SHARED_LEVELS:
        raise UserError(
            f"{trial.data.path}: speaker {sharing[0]} has the draw of {enrol.data.path}; at level "
            f"{level} they differ: protect the sets under names of their own (--dataset)"
        )
    return {
        "draws": f"shared (level {level})" if sharing else f"different (level {level})",
        "n_speakers_in_both": len(both),
        "n_speakers_sharing_a_draw": len(sharing),
    }


def describe_encoder(name: str, sides: tuple[Side, Side]) -> Json:
    """Record of an encoder's training in its folder; for a pretrained one its name.

    UserError if its training data has a speaker of enrolment or trials.
    """
    path = Path(name) / "encoder.yaml"
    if not is_there(path):
        return {"encoder": name, "trained": "elsewhere; its training speakers are not known here"}
    heard = read_training_speakers(path.parent)
    for side in sides:
        check_apart(set(heard or []), path.parent, set(side.data.spk2utt), side.data.path)
    checked = "not known" if heard is None else "none of enrolment or trials"
    trained = read_settings(path).get("trained")
    return {"encoder": name, "trained": trained, "training_speakers": checked}


def record_attack(
    name: str,
    enrol: Path,
    trial: Path,
    training: Path | None,
    pairs: Path | None,
    encoder: str,
    backend: str,
    asnorm: int = 0,
) -> Json:
    """Make the record of an attack. UserError if the data do not fit the attacker.

    name: of the table of attackers, or unprotected; a further run ends in _draw<n>. pairs: the
    protected set of which an aligned attacker has the original, too.
    """
    attacker = _find(name.partition("_draw")[0])
    sides = Side.read(enrol), Side.read(trial)
    for side, wanted in zip(sides, attacker.condition, strict=True):
        if (side.conf is not None) != (wanted == "A"):
            what = "original" if side.conf is None else "protected"
            raise UserError(
                f"{side.data.path}: is {what} speech; {name} is {attacker.condition} (enrolment, "
                "trial; O original, A protected)"
            )
    trained = None if training is None else _training(Side.read(training), sides)
    if (pairs is not None) != (attacker.evaluator == ALIGNED):
        raise UserError(f"--pairs: for the attacker {ALIGNED}, who learns from them, and no other")
    known = None if pairs is None else _pairs(Side.read(pairs), sides[1])
    return {
        "attacker": name,
        **attacker.parts(),
        "condition": attacker.condition,
        "enrolment_set": sides[0].record(),
        "trial_set": sides[1].record(),
        "comparison": compare_draws(*sides),
        "training_set": trained,
        "pairs": known,
        "encoder": describe_encoder(encoder, sides),
        "backend": backend,
        "asnorm": asnorm,
    }


def _find(name: str) -> Attacker:
    if name == UNPROTECTED.words:
        return UNPROTECTED
    if name not in ATTACKERS:
        raise UserError(f"--attacker: {name} is unknown; known: {' '.join(ATTACKERS)}")
    return ATTACKERS[name]


def _training(training: Side, sides: tuple[Side, Side]) -> Json:
    """Record of the training set; none of its speakers may occur in enrolment or trials."""
    heard = training.data
    for side in sides:
        check_apart(set(heard.spk2utt), heard.path, set(side.data.spk2utt), side.data.path)
    return training.record()


def _pairs(pairs: Side, trial: Side) -> Json:
    """Record of the pairs: none of their utterances is a trial, or shares the trials' draw."""
    if pairs.conf is None:
        raise UserError(
            f"{pairs.data.path}: is original speech; the pairs are named by their protected set"
        )
    if common := sorted(set(pairs.data.utt2spk) & set(trial.data.utt2spk)):
        raise UserError(
            f"{pairs.data.path}: utterance {common[0]} is in {trial.data.path}, too; the attacker "
            "would know the answer"
        )
    return pairs.record() | {"comparison": compare_draws(pairs, trial)}
