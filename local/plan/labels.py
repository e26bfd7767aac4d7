"""Labels of figures: their subjects, and their folders."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from utils.cli import refusing
from utils.tables import read_json_object, write_json

Family = StrEnum(
    "Family",
    "VERIFICATION SIMILARITY CALIBRATION STRONGEST LEGAL LEAKAGE GAINS "
    "INFERENCE CROWD GROUPS UTILITY",
)
PROSODY = "prosody"  # what it measures in place of an evaluator, for utility
ORIGINAL = "original"  # speech, in the place of a system
EVERYBODY = "all"  # evaluator of figures that choose among all
Words = tuple[str, ...]  # of an option or a command, or names
_FOLDERS: dict[str, str] = {Family.VERIFICATION: ""}


def label_of(word: str) -> str:
    """Name such as hub:a/b as a part of a folder's name; tables spell it as the option does."""
    return word.replace("/", "+")


class Labels(NamedTuple):
    """Subject of a folder of figures, as the columns of metrics.csv say it (WHERE of
    local/report/frame.py); empty where it speaks of no one gender or attacker."""

    split: str
    gender: str
    system: str
    family: str
    attacker: str
    evaluator: str
    condition: str

    @property
    def path(self) -> str:
        """Folder below exp/metrics."""
        who = "_".join(filter(None, (_FOLDERS.get(self.family, self.family), self.attacker)))
        return f"{self.system}/{who}.{label_of(self.evaluator)}/{self.condition}/{self.split}"

    @property
    def words(self) -> list[str]:
        """All of them, `-` for none, as local/label_figures.py takes them."""
        return [text or "-" for text in self]


def write_labels(folder: Path, labels: Labels) -> None:
    """Write labels.json of a folder of figures."""
    write_json(folder / "labels.json", labels._asdict())


def read_labels(folder: Path) -> Labels:
    """Labels of a folder of figures; UserError where it has none."""
    path = folder / "labels.json"
    found = read_json_object(path, "make the figures anew, or run local/label_figures.py")
    with refusing(f"{path}: {{}}; make the figures anew", TypeError):
        return Labels(**found)
