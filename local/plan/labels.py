"""What figures speak of, and where they lie."""

from enum import StrEnum
from typing import NamedTuple

Family = StrEnum(
    "Family",
    "VERIFICATION SIMILARITY CALIBRATION RECORDINGS REIDENTIFICATION STRONGEST LEGAL LEAKAGE GAINS "
    "INFERENCE CROWD GROUPS UTILITY",
)
PROSODY = "prosody"  # what it measures in place of an evaluator, for utility
ORIGINAL = "original"  # speech, in the place of a system
EVERYBODY = "all"  # evaluator of figures that choose among all
_FOLDERS: dict[str, str] = {Family.VERIFICATION: "", Family.REIDENTIFICATION: "reid"}


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

    def words(self, option: str, folder: str) -> list[str]:
        """The option of a program that collects figures, with the folder and all labels."""
        return [option, folder, *(text or "-" for text in self)]
