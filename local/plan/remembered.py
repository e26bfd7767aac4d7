# SPDX-License-Identifier: Apache-2.0
"""Options of earlier runs: their figures stay in the report as long as they are up to date."""

from pathlib import Path

from local.plan.options import Asked
from utils.cli import UserError
from utils.digests import remembering
from utils.jsonfiles import read_json_object
from utils.stamps import MEMORY, is_current

FILE = Path("exp/plan/options.json")  # of finished runs
LISTS = ("systems", "attackers", "evaluators", "genders", "asr", "emotion")
FLAGS = ("prosody", "quality")
# Options that change no figure, or only the figures that they name (trainings: evaluators;
# external: systems).
FREE = (
    *LISTS, *FLAGS, "stage", "stop_stage", "nj", "download", "dry_run", "list_stages", "corpus",
    "prepare_options", "also_prepared", "corpus_name", "corpus_note", "report_audio", "report_pdf",
    "drop", "command_line", "trainings", "external", "external_command",
    "protocol",
)  # fmt: skip


def what_counts(asked: Asked) -> dict[str, object]:
    """Remembered part of a run's options."""
    lists = {name: [*asked.words(name)] for name in LISTS}
    lists |= {name: ["true"] if asked.flag(name) else [] for name in FLAGS}
    return {"lists": lists, "common": asked.without(FREE)}


def widen(asked: Asked) -> tuple[Asked, list[str]]:
    """Options to show: those given, merged with those of finished runs that differ only in lists;
    and messages for the log. UserError for a word of --drop that is not remembered."""
    drop = {*asked.words("drop")}
    if not FILE.is_file():
        if drop:
            raise UserError(
                f"--drop: {FILE} is missing: no run was finished, nothing is remembered"
            )
        if Path("exp/results/.done").is_file():
            return asked, ["earlier runs recorded no options; the report has what this run names"]
        return asked, []
    earlier = read_json_object(FILE, "remove it; the report then has what this run names")
    lists, common = earlier["lists"], earlier["common"]
    known = {word for words in lists.values() for word in words if word != "true"}
    known |= {name for name in FLAGS if lists[name]} | {"all"}
    if drop - known:
        word = sorted(drop - known)[0]
        raise UserError(f"--drop: {word} is not remembered; there are: {' '.join(sorted(known))}")
    own = what_counts(asked)
    differ = sorted(
        name for name, value in asked.without(FREE).items() if common.get(name, "") != value
    )
    wider: dict[str, str] = {}
    for name in (*LISTS, *FLAGS):
        mine = own["lists"][name]  # type: ignore[index]
        more = [word for word in lists[name] if word not in mine and not drop & {word, name, "all"}]
        if more:
            wider[name] = " ".join([*mine, *more])
    if differ and wider:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in differ)
        return asked, [f"not in the report: what earlier runs measured with another {options}"]
    return asked.changed(wider), []


class Kept:
    """Test whether figures that this run does not make are up to date."""

    def __init__(self) -> None:
        self._known: dict[Path, bool] = {}

    def __call__(self, folder: str) -> bool:
        """Whether a finished folder, and all finished folders behind it, are as their own commands
        would make them now."""
        if not Path(folder, ".done").is_file():
            return False
        with remembering(MEMORY):
            return is_current(Path(folder), self._known)
