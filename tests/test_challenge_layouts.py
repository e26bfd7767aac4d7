"""A made-up participant of each VoicePrivacy challenge: their folder, through the whole recipe."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from local.protocols.attackers import read_protocol
from local.report.challenge import read_results
from local.report_challenge import main as report
from steps.audio import write_wav
from tests.corpus_trees import ROOT, make_recipe, table
from tests.recipes import run_recipe
from utils.archives import write_archive
from utils.datadir import write_data_dir
from utils.seeds import make_rng
from utils.tables import write_map

SUFFIX = {"2020": "_anon", "2022": "_anon", "2024": "_mcadams", "2026": "_mine"}
SPEAKERS = ["11", "12", "13", "21", "22", "23", "30", "31", "32", "33", "34", "35", "36", "37"]
GENDER = dict(zip(SPEAKERS, "fffmmmfmfmfmfm", strict=True))
SUBSET = {spk: "train-clean-360" if spk[0] == "3" else "test-clean" for spk in GENDER}
ROLES = {"enrolls": ("100-0", "100-1"), "trials": ("200-0", "200-1")}


def utterances(speakers: str, role: str = "") -> list[str]:
    parts = ROLES[role] if role else [part for own in ROLES.values() for part in own]
    return [f"{s}-{part}" for s, g in GENDER.items() if s[0] in speakers for part in parts]


SETS = {
    "libri_test_enrolls": utterances("12", "enrolls"),
    "libri_test_trials_f": utterances("1", "trials"),
    "libri_test_trials_m": utterances("2", "trials"),
    "libri_test_trials_mixed": utterances("12", "trials"),
    "train-clean-360": utterances("3"),
}
LISTS = ("libri_test_enrolls", "libri_test_trials_f", "libri_test_trials_m")


def speak(path: Path, utt: str, system: str) -> None:
    """Noise, another for each utterance and system."""
    samples = 0.1 * make_rng(0, system, utt).standard_normal(8000)
    write_wav(path, samples)


def librispeech(root: Path) -> Path:
    """The corpus in its own tree."""
    lines = [f"{s} | {g.upper()} | {SUBSET[s]} | 25 | A. B" for s, g in GENDER.items()]
    for spk, subset in SUBSET.items():
        for utt in utterances(spk[0]):
            if utt.startswith(f"{spk}-"):
                place = root / subset / spk / utt.split("-")[1]
                speak(place / f"{utt}.flac", utt, "original")
                with (place / f"{spk}-{utt.split('-')[1]}.trans.txt").open("a") as stream:
                    stream.write(f"{utt} SAID BY {spk}\n")
    (root / "SPEAKERS.TXT").write_text("\n".join(lines) + "\n")
    return root


def write_lists(data: Path, name: str) -> None:
    """A data directory of the organisers, as they give it to participants: without audio."""
    utts, kind = SETS[name], name.rpartition("_")[2]
    spk_of = {utt: utt.split("-")[0] for utt in utts}
    tables = {"utt2spk": spk_of, "spk2gender": {spk: GENDER[spk] for spk in spk_of.values()}}
    trials = None
    if kind == "enrolls":
        tables["enrolls"] = dict.fromkeys(utts, "")
    else:
        enrolled = [s for s in GENDER if SUBSET[s] == "test-clean" and kind in (GENDER[s], "mixed")]
        labels = {True: "target", False: "nontarget"}
        trials = [(s, utt, labels[spk_of[utt] == s]) for s in enrolled for utt in utts]
        if kind == "mixed":  # they draw them: not every speaker with every utterance
            trials.remove(("11", "21-200-0", "nontarget"))
    write_data_dir(data / name, tables, trials)


def protect(data: Path, name: str, suffix: str, table: str) -> None:
    """Protected audio of a set. table: before the path in wav.scp; empty: there is none."""
    folder = data / f"{name}{suffix}"
    for utt in SETS[name]:
        speak(folder / f"wav/{utt}.wav", utt, f"{data}{suffix}")
    if table:
        paths = {utt: f"{table}/{name}{suffix}/wav/{utt}.wav" for utt in SETS[name]}
        write_map(folder / "wav.scp", paths)


@pytest.fixture(scope="module")
def participants(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The data folder of one of each year, with lists, enrolment, trials and training set."""
    root = tmp_path_factory.mktemp("participants")
    found = {year: root / year / "data" for year in SUFFIX}
    for year, data in found.items():
        sets = ("libri_test_enrolls", "libri_test_trials_mixed") if year == "2026" else LISTS
        for name in sets:
            write_lists(data, name)
        # Paths are absolute, or relative to the folder of their recipe; or there is no table.
        table = {"2020": str(data), "2026": ""}.get(year, "data")
        for name in (*sets, *(["train-clean-360"] if year != "2020" else [])):
            protect(data, name, SUFFIX[year], table)
    return found


def write_xvectors(folder: Path, systems: tuple[str, ...]) -> None:
    """Vectors of every set, as another toolkit gives them: protection leaves half of a voice."""
    names = [*SETS, "train"]
    names += [f"{name}_{system}" for name in SETS for system in systems]
    names += [f"train_{system}_utt" for system in systems]
    for name in names:
        kept = 0.5 if name.endswith((*systems, "_utt")) else 1.0
        made = {}
        for utt in utterances("123"):
            voice = make_rng(0, "voice", utt.split("-")[0]).standard_normal(6)
            vector = kept * voice + make_rng(0, name, utt).standard_normal(6)
            made[utt] = vector.astype(np.float32)
        write_archive(folder / name / "xvector", made)


def cheap(protocol: str, folder: Path) -> Path:
    """The protocol with an attacker whose back end alone learns, from x-vectors that are given."""
    text = (ROOT / f"egs/TEMPLATE/conf/protocols/{protocol}.yaml").read_text()
    text = re.sub(r"semi_informed(_finetuned)?\b", "semi_informed_backend", text)
    text = re.sub(r"evaluators: .*", "evaluators: given:given/plda", text)
    (folder / f"{protocol}.yaml").write_text(text)
    return folder / f"{protocol}.yaml"


@pytest.mark.slow
def test_a_participant_of_each_year_gets_a_result_file(participants, tmp_path, capsys):
    conf = "corpus_name=small evaluation=libri_test evaluators=given:given/plda nj=1 bootstrap=0"
    folder = make_recipe(tmp_path / "recipe", "librispeech")
    (folder / "conf/recipe.conf").write_text("\n".join([*conf.split(), ""]))
    (folder / "run.sh").symlink_to(ROOT / "egs/TEMPLATE/run.sh")
    systems = tuple(f"y{year}" for year in SUFFIX)
    write_xvectors(folder / "given", systems)
    corpus = librispeech(tmp_path / "LibriSpeech")

    def run(years: tuple[str, ...], *options: str) -> None:
        external = " ".join(f"y{year}={participants[year]},suffix={SUFFIX[year]}" for year in years)
        words = ["--corpus", str(corpus), "--systems=", "--external", external]
        words += [f"--prepare-options=--lists {participants[years[-1]]}", *options]
        run_recipe(folder, *words)

    run(("2020", "2022", "2024"), "--attackers", "lazy_informed semi_informed_backend")
    capsys.readouterr()
    for year in ("2020", "2022", "2024"):
        words = [str(cheap(f"vpc{year}", tmp_path)), str(folder / "exp/results")]
        assert report([*words, "--of-system", f"y{year}", "--out", str(tmp_path)]) == 0
        name = {"2020": "results.txt", "2022": "results_summary.txt"}.get(year)
        protocol = read_protocol(cheap(f"vpc{year}", tmp_path))
        made = read_results(tmp_path / (name or f"result_for_rank_y{year}"), protocol)
        assert {s.split for s in made if s.protected} == {"libri_test_f", "libri_test_m"}
    run(("2026",), "--attackers", "semi_informed_backend", "--genders", "mixed")
    words = [str(cheap("vpc2026", tmp_path)), str(folder / "exp/results"), "--of-system", "y2026"]
    assert report(words) == 0
    assert "libri_test: average EER" in capsys.readouterr().out
    trials = (folder / "data/libri_test_trials_mixed/trials").read_text()
    assert "11 21-200-0" not in trials and "11 21-200-1 nontarget" in trials  # as they drew them
    assert "women and men together" in (folder / "exp/report/RESULTS.md").read_text()


@pytest.mark.slow
def test_W4_the_documented_first_command_trains_on_train_clean_360(participants, tmp_path):
    """Another subset beside it was taken for the training set, too, of which theirs has nothing."""
    folder = make_recipe(tmp_path / "recipe", "librispeech")
    (folder / "run.sh").symlink_to(ROOT / "egs/TEMPLATE/run.sh")
    corpus = librispeech(tmp_path / "LibriSpeech")
    speak(corpus / "dev-clean/41/100/41-100-0.flac", "41-100-0", "original")
    (corpus / "dev-clean/41/100/41-100.trans.txt").write_text("41-100-0 SAID\n")
    with (corpus / "SPEAKERS.TXT").open("a") as stream:
        stream.write("41 | F | dev-clean | 25 | A. B\n")
    for path in filter(Path.is_symlink, (folder / "conf").iterdir()):
        path.unlink()
        path.symlink_to(ROOT / "egs/TEMPLATE/conf" / path.name)
    page = (ROOT / "docs/protocols.md").read_text()
    block = page.split("./run.sh ")[1].split("\nlocal/")[0]
    block = block.replace("/data/LibriSpeech", str(corpus)).replace("\\\n", " ")
    block = block.replace("/data/vpc/data", str(participants["2024"]))
    run_recipe(folder, *shlex.split(block), "--stop-stage", "0")
    assert {utt[:2] for utt in table(folder / "data/train/utt2spk")} == set(SPEAKERS[6:])
    done = run_recipe(folder, *shlex.split(block), "--dry-run", "full")
    assert "skipped" not in done.stdout and "train_theirs_utt" in done.stdout
    # M6, W6: what a protocol sets was planned with, but the commands had the script's own options.
    assert "--spelling vpc2024" in done.stdout and "--spelling english" not in done.stdout
    again = [word.replace("vpc2024", "vpc2022") for word in shlex.split(block)]
    done = run_recipe(folder, *again, "--dry-run", "full")
    assert "--lda-dim 200" in done.stdout and "--lda-dim 150" not in done.stdout
