"""Planned commands of sets of options, as tests/plans.yaml has them: tests/plans/<name>.tsv.

`python -m tests.plans` writes them anew; look at what git shows then.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import yaml

from local.plan import needs
from local.plan.options import Asked
from local.plan.run import plan_run
from local.plan.studies import STUDIES
from tests.recipes import TEMPLATE, options_of, script_of
from utils.tables import write_file

HERE = Path(__file__).resolve().parent
KEPT = HERE / "plans"
CASES = yaml.safe_load((HERE / "plans.yaml").read_text())
PEOPLE = {"train": "a b", "voices": "v", "e_enrolls": "t", "e_trials_f": "t", "e_trials_m": "u",
          "e_trials_mixed": "t"}  # fmt: skip
OWN = {  # systems
    "b2_lasting": "anonymiser: mcadams\nalpha_range: [0.5, 0.9]\nlevel: perm\n",
    **{f"{of}_{level}": (TEMPLATE / f"conf/systems/{of}.yaml").read_text()
       .replace(": spk", f": {level}") for of, level in (("b1", "utt"), ("knnvc", "const"))},
}  # fmt: skip


def make_settings(folder: Path) -> None:
    """The project's settings in a corpus's folder, with encoder `e` and some systems beside."""
    needs._describe.cache_clear()  # of systems of these names in other folders
    shutil.copytree(TEMPLATE / "conf", folder / "conf")
    (folder / "conf/encoders/e.yaml").write_text("encoder: ecapa\n")
    for name, text in OWN.items():
        (folder / f"conf/systems/{name}.yaml").write_text(text)


def make_set(folder: Path, speakers: str, **tables: str) -> None:
    """A data directory of one utterance a speaker, who is a woman unless `tables` say otherwise."""
    write_file(folder / "audio.wav", "")
    for name, value in {"utt2spk": "", "spk2gender": "f", "wav.scp": str(folder / "audio.wav"),
                        **tables}.items():  # fmt: skip
        lines = (f"{one} {value or one}\n" for one in speakers.split())
        (folder / name).write_text("".join(lines))


def make_corpus(folder: Path) -> None:
    """A corpus's folder, whose sets are there, as is speech that something else protected."""
    make_settings(folder)
    for name, speakers in PEOPLE.items():
        make_set(folder / "data" / name, speakers, text="hello")
    make_set(folder / "other/data/train", "d")
    for name in ("mine", "theirs/one", "theirs/two", "theirs/train"):
        for utt in "abtu":
            write_file(folder / name / f"{utt}_x.wav", "")
    (folder / "mine/encoder.yaml").touch()


def draw(name: str) -> None:
    """A set of the current folder, as a system that draws something has protected it."""
    write_file(f"data/{name}/conf.json", '{"is_random": true}')


def plan_case(name: str) -> str:
    """Stage, output and commands of each step of a set of options, in the folder of a corpus; @ is
    the output."""
    case = CASES[name]
    recipe = case.get("recipe", "run")
    for system in case.get("drawn", ()):
        of = "e_nist" if recipe == "nist" else "e_enrolls"
        draw(f"{of}_{system.rpartition('/')[2]}")
    named = {"given": " ".join(case["options"])}  # kept whatever is installed
    options = options_of(TEMPLATE / f"{recipe}.sh") | case["options"] | named
    script = script_of(TEMPLATE / f"{recipe}.sh")
    rows = script.arrange({"run": plan_run, **STUDIES}[recipe](Asked(options)).tables, options)
    found = []
    for row in rows:
        words = " ".join(script.words(row, options)).replace(f"{Path.cwd()}/", "")
        words = re.sub(rf"(?<!\S){re.escape(row.out)}(?![^\s/])", "@", words)
        words = re.sub(r" && local/label_figures.py .*", "", words)  # the output says the same
        found.append(f"{row.stage}\t{row.out}\t{words}\n")
    return "".join(found)


def main() -> None:
    """Write all."""
    KEPT.mkdir(exist_ok=True)
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            make_corpus(Path(folder))
            os.chdir(folder)
            (KEPT / f"{name}.tsv").write_text(plan_case(name))
            os.chdir(HERE)


if __name__ == "__main__":
    main()
