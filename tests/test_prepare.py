"""prepare.sh of each corpus, on small trees in its layout and on the real excerpts."""

import hashlib
import os
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from tests.corpus_trees import ROOT, files, make_recipe, prepare, serving, table, write_audio
from tests.recipes import Done, run_words
from utils.datadir import DataDir, load_data_dir
from utils.tables import write_file, write_map

GENDER = {
    "speechocean": {f"so000{n}": "fm"[n % 2] for n in (1, 2, 3, 4, 6, 8)},
    "an4": dict(zip(("fash", "fjam", "fsaf2", "mblw", "mrjc2", "mtje"), "fffmmm", strict=True)),
    "emodb": dict(zip(("03", "08", "09", "10", "12", "16"), "mffmmf", strict=True)),
    "fsdd": dict.fromkeys(("ann_b", "jackson", "theo"), "m"),
    "librispeech": {"61": "f", "121": "f", "1089": "m", "908": "m", "84": "f", "174": "m",
                    "19": "f"},
    "mls": {"102": "f", "10214": "m", "1054": "f", "1897": "m", "91": "f", "2037": "m", "252": "f"},
    "vctk": {"p225": "f", "p226": "m", "p227": "m", "p228": "f", "p229": "f", "p232": "m",
             "p315": "m", "s5": "f"},
}  # fmt: skip
SUBSET = {"61": "test-clean", "121": "test-clean", "1089": "test-clean", "908": "test-clean",
          "84": "dev-clean", "174": "dev-clean", "19": "train-clean-100"}  # fmt: skip
NUMBERS = (1, 2, 24, 25, 26, 27, 300)
METADATA = """metadata = {
    'ann_b': {
        'gender': 'male',
        'accent': 'USA/neutral',
    },
    'jackson': {'gender': 'male', 'language': 'english'},
    'theo': {
        'gender': 'male',
    },
}
"""


def write_an4(root: Path) -> None:
    """Its training part, whose transcriptions have sentence marks."""
    ids, lines = [], []
    for spk in GENDER["an4"]:
        for name in (f"cen{number}-{spk}-b" for number in range(1, 5)):
            ids.append(f"an4_clstk/{spk}/{name}\n")
            lines.append(f"<s> TWO SIX {spk.upper()} </s> ({name})\n")
            write_audio(root / "wav/an4_clstk" / spk / f"{name}.flac")
    write_file(root / "etc/an4_train.fileids", "".join(ids))
    write_file(root / "etc/an4_train.transcription", "".join(lines))


def write_emodb(root: Path) -> None:
    for spk in GENDER["emodb"]:
        for name in ("a01Fa", "a01Wb", "b10Na", "b10Tc", "a05Lb"):
            write_audio(root / f"wav/{spk}{name}.wav")


def write_fsdd(root: Path) -> None:
    for spk in GENDER["fsdd"]:
        for name in (f"{digit}_{spk}_{index}" for digit in (0, 7) for index in (0, 11)):
            write_audio(root / f"recordings/{name}.wav")
    (root / "metadata.py").write_text(METADATA)


def write_librispeech(root: Path) -> None:
    """7 speakers, 2 chapters, 3 utterances each."""
    for spk, subset in SUBSET.items():
        for chapter in ("100", "200"):
            folder = root / subset / spk / chapter
            utts = [f"{spk}-{chapter}-{number:04d}" for number in range(3)]
            for utt in utts:
                write_audio(folder / f"{utt}.flac")
            lines = [f"{utt} SPOKEN BY {spk} IT'S {utt[-1]}" for utt in utts]
            # Without a last line end, as an editor may leave it: must not run into the next file.
            (folder / f"{spk}-{chapter}.trans.txt").write_text("\n".join(lines))
    write_speakers(root, *SUBSET)
    (root / "original-mp3").mkdir()


def write_speakers(root: Path, *speakers: str) -> None:
    lines = ["; Some pipe(|) separated metadata", ";ID  |SEX| SUBSET           |MINUTES| NAME"]
    for spk in speakers:
        gender = GENDER["librispeech"][spk].upper()
        lines.append(f"{spk:<4} | {gender} | {SUBSET[spk]:<16} | 25.03 | A. | B")
    (root / "SPEAKERS.TXT").write_text("\n".join(lines) + "\n")


def write_vctk(root: Path, new: bool = True) -> None:
    """Version 0.92 or 0.80, seven sentences of each; p315 has no transcripts, and mic1 only."""
    lines = ["ID  AGE  GENDER  ACCENTS  REGION COMMENTS"]
    for spk, gender in GENDER["vctk"].items():
        if not new and spk == "s5":
            continue
        name = spk if new else spk.lstrip("p")
        lines.append(f"{name}  23  {gender.upper()}  English    Southern  England")
        for utt in (f"{spk}_{number:03d}" for number in NUMBERS):
            if new:
                for mic in (1,) if spk == "p315" else (1, 2):
                    write_audio(root / f"wav48_silence_trimmed/{spk}/{utt}_mic{mic}.flac")
            elif spk != "p315":
                write_audio(root / f"wav48/{spk}/{utt}.wav")
            if spk != "p315":
                text = f"Sentence {int(utt[-3:])}, it's\tread.\r\n"
                write_file(root / f"txt/{spk}/{utt}.txt", text)
    (root / "speaker-info.txt").write_text("\r\n".join(lines))


def write_speechocean(root: Path) -> None:
    """As it is published: Kaldi tables with tabs, speakers called by numbers, ages."""
    for part, speakers in (("train", ("0001", "0003", "0006")), ("test", ("0002", "0004", "0008"))):
        tables: dict[str, list[str]] = {}
        for spk in speakers:
            gender = GENDER["speechocean"][f"so{spk}"]
            tables.setdefault("spk2gender", []).append(f"{spk}\t{gender}")
            tables.setdefault("spk2age", []).append(f"{spk}\t{int(spk) + 5}")
            for utt in (f"0{spk}{number:04d}" for number in range(1, 5)):
                tables.setdefault("utt2spk", []).append(f"{utt}\t{spk}")
                tables.setdefault("text", []).append(f"{utt}\tREAD BY {spk}")
                path = f"WAVE/SPEAKER{spk}/{utt}.WAV"
                tables.setdefault("wav.scp", []).append(f"{utt}\t{path}")
                write_audio(root / path)
        for name, lines in tables.items():
            write_file(root / part / name, "\n".join(lines) + "\n")


def write_mls(root: Path) -> None:
    """Published parts of one language: two books each, genders in capitals, Opus in training."""
    lines = [" SPEAKER   |   GENDER   | PARTITION  |  MINUTES   |  BOOK ID   | TITLE | CHAPTER "]
    for n, (spk, gender) in enumerate(GENDER["mls"].items()):
        part, kind = ("test", ".flac") if n < 4 else ("train", ".opus")
        for book in ("300", "4000"):
            lines.append(
                f"{spk:>9}  |     {gender.upper()}      | {part} | 7.5 | {book} | A | B: C"
            )
            for utt in (f"{spk}_{book}_{number:06d}" for number in range(2)):
                write_audio(root / part / "audio" / spk / book / f"{utt}{kind}")
                with (root / part / "transcripts.txt").open("a") as stream:
                    stream.write(f"{utt}\tgelesen von {spk} für sie\n")
    (root / "metainfo.txt").write_text("\n".join(lines) + "\n")


WRITE = {"an4": write_an4, "emodb": write_emodb, "fsdd": write_fsdd,
         "librispeech": write_librispeech, "mls": write_mls, "speechocean": write_speechocean,
         "vctk": write_vctk}  # fmt: skip
TWO = ("--speakers", 2, "--enrol-utts", 2)
N_UTTS = dict(zip(WRITE, (24, 24, 12, 38, 28, 24, 49), strict=True))
OPTIONS = dict.fromkeys(WRITE, TWO) | {
    "librispeech": ("--enrol-utts", 2), "mls": ("--enrol-utts", 2, "--train-set", "train"),
}  # fmt: skip


class Tree:
    """A corpus's recipe folder, and a small corpus in a folder with blanks and `=` in its name."""

    def __init__(self, folder: Path, name: str, write: Callable[[Path], object]) -> None:
        self.name, self.root = name, folder / "my = corpora" / name
        self.recipe = make_recipe(folder / "recipe", name)
        self.data = self.recipe / "data"
        self.root.parent.mkdir()
        write(self.root)

    def made(self, *options: object, status: int = 0) -> Done:
        words = ("--corpus", self.root, *OPTIONS[self.name], *options)
        return prepare(self.recipe, *words, status=status)

    def sets(self, *names: str) -> Iterator[DataDir]:
        for path in (self.data / name for name in names) if names else sorted(self.data.iterdir()):
            yield load_data_dir(path, need=("wav.scp", "utt2dur", "spk2gender", "text"))

    def table(self, name: str) -> dict[str, str]:
        return table(self.data / name)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all small corpora, to be copied."""
    folder = tmp_path_factory.mktemp("written")
    for name, write in WRITE.items():
        write(folder / name)
    return folder


@pytest.fixture
def tree(tmp_path: Path, written: Path) -> Callable[..., Tree]:
    def plant(name: str, write: Callable[[Path], object] | None = None) -> Tree:
        return Tree(tmp_path, name, write or partial(shutil.copytree, written / name))

    return plant


def targets(data: DataDir) -> tuple[int, int]:
    """Numbers of target and of nontarget trials."""
    count = Counter(label for _, _, label in data.trials or [])
    return count["target"], count["nontarget"]


EVALUATION = {"an4": ["an4_test"], "emodb": ["emodb_test"], "fsdd": ["fsdd_test"],
              "librispeech": ["libri_test"], "mls": ["de_test"],
              "speechocean": ["speechocean_test"],
              "vctk": ["vctk_test", "vctk_test_common"]}  # fmt: skip


def text_and_audio(tree: Tree, utt: str, spk: str) -> tuple[str, str]:
    """The words of an utterance, and the end of its audio's path."""
    match tree.name:
        case "an4":
            name = utt.removeprefix(f"{spk}-")
            return f"TWO SIX {spk.upper()}", f"/wav/an4_clstk/{spk}/{name}.flac"
        case "emodb":
            german = {"a01": "Der Lappen liegt auf dem Eisschrank."}
            found = tree.table("train/text") | tree.table("emodb_test_enrolls/text")
            return german.get(utt[5:8], found.get(utt, "")), f"/wav/{utt[3:]}.wav"
        case "fsdd":
            _, digit, index = utt.rsplit("-", 2)
            words = {"0": "ZERO", "7": "SEVEN"}
            return words[digit], f"/recordings/{digit}_{spk}_{index}.wav"
        case "librispeech":
            where = f"/{SUBSET[spk]}/{spk}/{utt.split('-')[1]}/{utt}.flac"
            return f"SPOKEN BY {spk} IT'S {utt[-1]}", where
        case "mls":
            part, kind = (
                ("test", "flac") if list(GENDER["mls"]).index(spk) < 4 else ("train", "opus")
            )
            where = f"/{part}/audio/{spk}/{utt.split('_')[1]}/{utt}.{kind}"
            return f"gelesen von {spk} für sie", where
        case "speechocean":
            name = spk.removeprefix("so")
            return f"READ BY {name}", f"/WAVE/SPEAKER{name}/{utt.removeprefix(f'{spk}-')}.WAV"
    words = f"Sentence {int(utt.split('_')[1])}, it's read."
    return words, f"/wav48_silence_trimmed/{spk}/{utt}_mic2.flac"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_utts"), N_UTTS.items())
def test_sets_made_and_made_again(tree, name, n_utts, monkeypatch):
    """Files named .FLAC or .WAV were left out; with CDPATH the corpus's name was two lines."""
    small = tree(name)
    for path in sorted(small.root.rglob("*.*"))[::2]:
        if path.suffix in (".flac", ".wav", ".sph"):
            path.rename(path.with_suffix(path.suffix.upper()))
    monkeypatch.setenv("CDPATH", ".:/elsewhere")
    done = small.made("--nj", 3, "--corpus", Path("../my = corpora", name))
    genders = ("m",) if name == "fsdd" else ("f", "m", "mixed")
    parts = ["enrolls", *(f"trials_{gender}" for gender in genders)]
    wanted = {"train", *(f"{e}_{part}" for e in EVALUATION[name] for part in parts)}
    assert {path.name for path in small.data.iterdir()} == wanted
    seen: list[str] = []
    for data in small.sets():
        assert data.spk2gender == {spk: GENDER[name][spk] for spk in data.spk2utt}
        # Mixed trials hold those of both genders again; both evaluations enrol the same.
        again = data.path.name.endswith("mixed") or data.path.name == "vctk_test_common_enrolls"
        seen += [] if again else data.utt2spk
        for utt, spk in data.utt2spk.items():
            words, where = text_and_audio(small, utt, spk)
            assert utt.startswith(spk) and data.wav[utt].lower() == f"{small.root}{where}".lower()
            assert (name == "emodb" and not words) or (data.text or {})[utt] == words
            assert (data.utt2dur or {})[utt] == 0.2
    assert len(seen) == len(set(seen)) == n_utts  # every utterance in one set
    enrolled = small.table(f"{EVALUATION[name][0]}_enrolls/spk2gender")
    train = set(small.table("train/spk2gender"))
    assert train == GENDER[name].keys() - enrolled.keys() - {"p315"}
    assert sorted(enrolled.values()) == list("mm" if name == "fsdd" else "ffmm")
    # Again, over what an interrupted run left: the same bytes, and nothing else.
    before = files(small.data)
    write_file(small.data / ".prepare/eval.tsv", "half a tab")
    (small.data / "train/wav.scp").unlink()
    small.made()
    assert files(small.data) == before
    if check := globals().get(f"check_{name}"):
        check(small, done)


def check_emodb(small: Tree, done: Done) -> None:
    assert "left out: 6 utterances of boredom (--emotions)" in done.stderr
    emotion = {u: e for data in small.sets() for u, e in table(data.path / "utt2emotion").items()}
    assert len(emotion) == 24
    assert {*table(small.data / "train/utt2lang").values()} == {"de"}
    assert (emotion["03-03a01Fa"], emotion["09-09a01Wb"]) == ("happiness", "anger")
    assert (emotion["08-08b10Na"], emotion["10-10b10Tc"]) == ("neutral", "sadness")
    (data,) = small.sets("emodb_test_trials_f")
    assert [len(utts) for utts in data.spk2utt.values()] == [2, 2]


def check_mls(small: Tree, _: Done) -> None:
    """Track 2 of VoicePrivacy 2026: everybody meets everybody, by its lists or by our own."""
    (data,) = small.sets("de_test_trials_mixed")
    assert targets(data) == (8, 24)
    lists, own = small.recipe / "lists", small.data
    for name in ("de_test_enrolls", "de_test_trials_mixed"):
        shutil.copytree(own / name, lists / name)
        genders = (lists / name / "spk2gender").read_text()
        (lists / name / "spk2gender").write_text(genders.replace(" f", " F").replace(" m", " M"))
    some = "91_300_000000 91\n91_300_999999 91\n2037_300_000000 2037\n"
    write_file(lists / "train/utt2spk", some)
    done = small.made("--lists", lists)
    assert "official training set: 2 of 3 utterances are there\n" in done.stderr
    assert targets(next(iter(small.sets("de_test_trials_mixed")))) == (8, 24)
    assert [*small.table("train/utt2spk")] == ["2037_300_000000", "91_300_000000"]


def check_speechocean(small: Tree, _: Done) -> None:
    ages = {s: a for data in small.sets() for s, a in table(data.path / "spk2age").items()}
    assert ages == {spk: str(int(spk[2:]) + 5) for spk in GENDER["speechocean"]}


def check_librispeech(small: Tree, done: Done) -> None:
    enrol, trial = (small.table(f"libri_test_{part}/utt2spk") for part in ("enrolls", "trials_f"))
    assert len(enrol) == 4 * 2 and len(trial) == 2 * 3
    # Enrolment and trials come from different chapters, as in the official lists.
    chapter = {utt.rpartition("-")[0] for utt in enrol}
    assert not chapter & {utt.rpartition("-")[0] for utt in trial}
    assert "test-clean: 24 utterances; published: 2620" in done.stderr
    assert "4 of 24 utterances are in no list" in done.stdout
    # Another seed draws others; the training set is the same.
    before = files(small.data)
    small.made("--seed", 5)
    after = files(small.data)
    assert after["libri_test_enrolls/utt2spk"] != before["libri_test_enrolls/utt2spk"]
    assert after["train/utt2spk"] == before["train/utt2spk"]
    small.made("--train-subsets", "dev-clean")
    assert {*small.table("train/spk2gender")} == {"84", "174"}
    # Two subsets are one list, and train nobody.
    small.made("--eval-subset", "test-clean,dev-clean")
    assert {*small.table("libri_test_enrolls/spk2gender")} == {*SUBSET} - {"19"}
    assert {*small.table("train/spk2gender")} == {"19"}


def numbers(data: DataDir) -> set[int]:
    return {int(utt.split("_")[1]) for utt in data.utt2spk}


def check_vctk(small: Tree, done: Done) -> None:
    """Different sentences, common ones, and the same enrolment for both."""
    assert "left out: 7 files of speaker p315" in done.stderr
    enrol, common, train = small.sets("vctk_test_enrolls", "vctk_test_common_enrolls", "train")
    assert numbers(enrol) <= {25, 26, 27, 300} and numbers(train) == set(NUMBERS)
    assert (enrol.utt2spk, enrol.enrolls) == (common.utt2spk, common.enrolls)
    for gender in "fm":
        names = (f"{evaluation}_trials_{gender}" for evaluation in EVALUATION["vctk"])
        different, same = small.sets(*names)
        assert numbers(different) <= {25, 26, 27, 300} and numbers(same) == {1, 2, 24}
        assert different.spk2utt.keys() == same.spk2utt.keys()
        # 2 enrolled speakers and 2 x 2 different, 2 x 3 common utterances.
        assert (targets(different), targets(same)) == ((4, 4), (6, 6))
    small.made("--mic", "mic1", "--sentences", "different")
    assert all("_mic1.flac" in path.lower() for path in small.table("train/wav.scp").values())


@pytest.mark.slow
def test_fsdd_genders_in_a_table_and_a_woman_who_only_trains(tree):
    small = tree("fsdd")
    metadata = small.root / "metadata.py"
    metadata.write_text(METADATA.replace("'male', 'lang", "'female', 'lang"))
    small.made()
    assert small.table("train/spk2gender") == {"jackson": "f"}
    metadata.unlink()
    lines = ["speaker\tgender\taccent", *(f"{spk}\tm\tUSA neutral" for spk in GENDER["fsdd"])]
    (small.root / "speakers.tsv").write_text("\n".join(lines) + "\n")
    small.made()
    assert {g for data in small.sets() for g in (data.spk2gender or {}).values()} == {"m"}


def test_an_excerpt_of_speechocean_with_audio_that_its_table_lacks(tree):
    """It was passed over, and of two files with one name the last that was found was taken."""
    small = tree("speechocean", lambda root: write_audio(root / "audio/so1-1.wav"))
    write_file(small.root / "utts.tsv", "utterance speaker ...\nso1-1\tso1\tf\t9\t0.2\tONE\n")
    for name, said, status in ("so1-2.wav", "name the speaker of ", 3), ("so1-1.flac", "twice", 2):
        write_audio(small.root / "audio" / name)
        refused(small, (), said, status)


@pytest.mark.slow
def test_vctk_080_and_a_training_set_of_another_corpus(tree, tmp_path):
    small = tree("vctk", lambda root: write_vctk(root, new=False))
    small.made("--leave-out", "")
    assert set(small.table("train/spk2gender").values()) == {"f", "m"}
    paths = small.table("train/wav.scp").values()
    assert all(path.startswith(str(small.root / "wav48")) for path in paths)
    (small.data / "train").rename(tmp_path / "libri")
    options = ("--leave-out", "", "--speakers", 0)
    small.made(*options, "--train-from", tmp_path / "libri")
    assert small.table("train/utt2spk") == table(tmp_path / "libri/utt2spk")
    assert len(small.table("vctk_test_enrolls/spk2gender")) == 6
    nobody = small.made(*options, status=2)
    assert "no speaker is left to train with" in nobody.stderr


@pytest.mark.parametrize("suffix", ["", "_mic1"])
@pytest.mark.slow
def test_official_lists_of_vctk(tree, tmp_path, suffix):
    """As the challenge packs them: common trials in a folder of their own, ids with microphone."""
    small, lists = tree("vctk"), tmp_path / "lists"
    small.made()
    names = [path.name for path in small.data.iterdir() if path.name != "train"]
    for name in names:
        if name == "vctk_test_common_enrolls":
            continue
        official = name.replace("vctk_test_common_trials", "vctk_test_trials")
        official += "_common" if "common" in name else ""
        shutil.copytree(small.data / name, lists / official)
        for path in (lists / official).iterdir():
            text = path.read_text()
            for utt in small.table(f"{name}/utt2spk"):
                text = text.replace(utt, utt + suffix) if path.name != "wav.scp" else text
            path.write_text(text)
        (lists / official / "wav.scp").unlink()
    shutil.rmtree(small.data)
    gone = next(iter(table(lists / "vctk_test_trials_f_common/utt2spk")))
    audio = small.root / "wav48_silence_trimmed" / gone.split("_")[0]
    (audio / f"{gone.removesuffix('_mic1')}{suffix or '_mic2'}.flac").unlink()
    corpus = ("--corpus", small.root)
    done = prepare(small.recipe, *corpus, "--lists", lists)
    assert "trial utterances      f 6 -> 5           m 6 -> 6" in done.stdout
    assert "left out: 1 transcripts without audio\n" in done.stderr  # 0.92 has some of p362
    for name in names:
        wav = small.table(f"{name}/wav.scp")
        assert all(utt.endswith(suffix) for utt in wav)
        assert all(path.endswith(f"{suffix or '_mic2'}.flac") for path in wav.values())
    official = table(lists / "vctk_test_enrolls/enrolls")
    assert small.table("vctk_test_enrolls/enrolls") == official
    evaluated = set(table(lists / "vctk_test_enrolls/spk2gender"))
    assert not evaluated & set(small.table("train/spk2gender"))
    bad = prepare(small.recipe, *corpus, "--lists", tmp_path, status=2)
    assert "vctk_test_enrolls/enrolls is missing" in bad.stderr
    # As the organisers' server packs them, in one folder, they were refused.
    server, whole, before = tmp_path / "server/vctk_test", {}, files(small.data)
    for path in lists.iterdir():
        name = path.name.removeprefix("vctk_test_")
        listed = server / f"{name}{'' if suffix else '_mic2'}"
        write_file(listed, (path / name.split("_")[0]).read_text())
        for file in ("utt2spk", "spk2gender"):
            whole[file] = whole.get(file, {}) | table(path / file)
    for file, rows in whole.items():
        write_map(server / file, rows)
    prepare(small.recipe, *corpus, "--lists", server.parent)
    assert files(small.data) == before


def refused(small: Tree, options: Sequence[object], message: str, status: int = 2) -> str:
    """In one line, but for counts of what was found, and without a trace in data."""
    done = small.made(*options, status=status)
    lines = [x for x in done.stderr.splitlines() if "published:" not in x and "left out: " not in x]
    assert message in done.stderr and (len(lines) == 1 or status == 3), done.stderr
    assert not (small.data / "train").exists()
    return str(done.stderr)


Change = Callable[[Path], object]


def to(*paths: str) -> Change:
    """Audio that is there, too."""
    return lambda root: [write_audio(root / path) for path in paths]


def without(*patterns: str) -> Change:
    def change(root: Path) -> None:
        for path in [path for pattern in patterns for path in root.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def suffix(pattern: str, new: str) -> Change:
    return lambda root: [path.rename(path.with_suffix(new)) for path in root.glob(pattern)]


def replaced(name: str, old: str, new: str) -> Change:
    return lambda root: write_file(root / name, (root / name).read_text().replace(old, new))


def copied(old: str, new: str) -> Change:
    return lambda root: shutil.copytree(root / old, root / new)


CHANGES = {change.__name__: change for change in (to, without, suffix, replaced, copied)}


@pytest.mark.parametrize(
    ("name", "change", "options", "message", "status"),
    [
        *((name, {}, ["--corpus", ""], "--corpus is missing", 2) for name in WRITE),
        *((name, {}, ["--corpus", "nowhere"], "nowhere: no such folder", 2) for name in WRITE),
        *((name, {}, ["--corpus", "", "--download", "true"], "README.md", 2)
          for name in ("an4", "emodb", "fsdd", "mls")),
        ("vctk", {}, ["--corpus", "", "--download", "true"], "licence page", 2),
        ("an4", {"without": ["*"]}, [], "an4/wav: no such folder", 2),
        ("an4", {"suffix": ["**/*.flac", ".raw"]}, [], "wav: holds no", 2),
        ("an4", {"without": ["etc/an4_train.fileids"]}, [], "holds neither an4_train.fileids", 2),
        ("an4", {"to": ["wav/an4_clstk/fash/cen1-fash-b.wav"]}, [],
         "fash-cen1-fash-b: is there twice: ", 2),
        ("an4", {"to": ["wav/an4_clstk/fash/cen9-fash-b.wav"]}, [],
         "fash-cen9-fash-b: there is no transcript for ", 3),
        ("an4", {"without": ["wav/an4_clstk/fash/cen1-fash-b.flac"]}, [],
         "fash-cen1-fash-b: there is no audio file for it", 3),
        ("an4", {"copied": ["wav/an4_clstk/fjam", "wav/an4_clstk/xjam"]}, [],
         "speaker xjam has gender 'x' in the first letter", 3),
        ("emodb", {}, ["--emotions", "joy"], "'joy'; known: anger", 2),
        ("emodb", {"without": ["wav"]}, [], "wav: no such folder", 2),
        ("emodb", {"to": ["wav/07a01Fa.wav"]}, [], "speaker 07 is not in the list in prepare.sh",
         3),
        ("emodb", {"to": ["wav/03a03Fa.wav"]}, [], "03-03a03Fa: there is no transcript", 3),
        ("emodb", {"to": ["wav/03a01Xa.wav"]}, [], "03-03a01Xa: its emotion is ''", 3),
        ("emodb", {"to": ["wav/hello.wav"]}, [], "no <speaker><sentence><emotion><version>", 2),
        ("fsdd", {"replaced": ["metadata.py", "'theo'", "'other'"]}, [], "speaker theo is not in ",
         3),
        ("fsdd", {"to": ["recordings/zero_theo.wav"]}, [], "name the speaker of ", 3),
        ("fsdd", {"without": ["recordings"]}, [], "recordings: no such folder", 2),
        ("fsdd", {"without": ["metadata.py"]}, [], "neither speakers.tsv nor metadata.py", 2),
        ("librispeech", {"without": ["*"]}, [], "librispeech/SPEAKERS.TXT is missing", 2),
        ("librispeech", {}, ["--train-subsets", "dev-claen"], "dev-claen: no such folder", 2),
        ("librispeech", {"suffix": ["train-clean-100/**/*.flac", ".mp3"]}, [],
         "train-clean-100: holds no <speaker>", 2),  # the layout changed: audio of another format
        ("librispeech", {"without": ["train-clean-100", "dev-clean/**/*.trans.txt"]}, [],
         "dev-clean: holds no <speaker>/<chapter>/*.trans.txt", 2),
        ("librispeech", {"without": ["train-clean-100", "dev-clean"]}, [],
         "has no subset but test-clean", 2),
        ("librispeech", {"copied": ["test-clean/61", "train-clean-100/61"]}, [],
         "1 speakers are in test-clean and in the training subsets "
         "(dev-clean train-clean-100), such as 61\n", 2),
        ("librispeech", {"to": ["test-clean/61/200/61-100-0001.flac"]}, [],
         "61-100-0001: is there twice: ", 2),
        ("librispeech", {"replaced": ["test-clean/61/100/61-100.trans.txt", "-0002", "-0001"]}, [],
         "61-100-0001: is listed twice, with the same audio: ", 2),
        ("librispeech", {"replaced": ["SPEAKERS.TXT", "1089 ", "1088 "]}, [],
         "1089-100-0000: speaker 1089 is not in ", 3),
        ("librispeech", {"without": ["test-clean/61/100/61-100-0002.flac"]}, [],
         "61-100-0002: there is no audio file for it", 3),
        ("mls", {"without": ["metainfo.txt"]}, [],
         "metainfo.txt is missing; --corpus is the folder of one", 2),
        ("mls", {}, ["--evaluation", "german"], "german: ends in _dev or _test", 2),
        ("mls", {}, ["--evaluation", "de_dev"], "dev/transcripts.txt is missing", 2),
        ("mls", {}, ["--lists", "gone"], "--lists gone: no such folder", 2),
        ("mls", {"suffix": ["train/**/*.opus", ".mp3"]}, [],
         "train/audio: holds no <speaker>/<book>/<utt>", 2),
        ("mls", {"replaced": ["metainfo.txt", "     M ", "       "]}, [],
         "speaker 10214 is not in ", 3),
        ("mls", {"to": ["test/audio/102/300/102_300_000000.opus"]}, [],
         "102_300_000000: is there twice: ", 2),
        ("mls", {"to": ["test/audio/102/300/102_300_9.flac"]}, [],
         "102_300_9: there is no transcript", 3),
        ("vctk", {"without": ["*"]}, [], "speaker-info.txt is missing", 2),
        ("vctk", {}, ["--mic", "mic3"], "known: mic1, mic2", 2),
        ("vctk", {"to": ["wav48_silence_trimmed/p225/take_1.flac"]}, [],
         "p225/take_1.flac: no <speaker>_<number>", 2),
        ("vctk", {}, ["--leave-out", "", "--mic", "mic1"],
         "7 of 56 utterances cannot be used (7 for the transcript)", 3),
        ("vctk", {"without": ["wav48_silence_trimmed/*/*_025_*", "wav48_silence_trimmed/*/*_026_*",
         "wav48_silence_trimmed/*/*_027_*", "wav48_silence_trimmed/*/*_300_*"]}, [],
         "without them: --sentences common", 2),
        ("vctk", {"without": ["wav48_silence_trimmed"]}, [], "holds none of wav48_silence_trimmed",
         2),
    ],
)  # fmt: skip
def test_what_is_not_the_corpus_is_refused(tree, written, name, change, options, message, status):
    small = tree(name, partial(shutil.copytree, written / name, copy_function=os.link))
    for how, words in change.items():
        CHANGES[how](*words)(small.root)
    refused(small, options, message, status)
    assert not list(small.data.glob("*"))


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def openslr(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server with the subsets packed as OpenSLR packs them, and its folder."""
    folder, corpus = tmp_path / "served", tmp_path / "LibriSpeech"
    folder.mkdir()
    write_librispeech(corpus)
    for subset in set(SUBSET.values()):
        with tarfile.open(folder / f"{subset}.tar.gz", "w:gz") as archive:
            for name in ("SPEAKERS.TXT", subset):
                archive.add(corpus / name, f"LibriSpeech/{name}")
    with serving(partial(QuietHandler, directory=str(folder))) as url:
        yield url, folder


@pytest.mark.slow
def test_librispeech_is_downloaded(openslr, tmp_path):
    (url, served), recipe = openslr, make_recipe(tmp_path / "recipe", "librispeech")
    sums = {p.name: hashlib.md5(p.read_bytes()).hexdigest() for p in served.iterdir()}
    listed = recipe / "conf/md5sum.txt"
    listed.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    options = ("--download", "true", "--url", url, "--enrol-utts", 2)
    broken = served / "train-clean-100.tar.gz"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-10])
    done = prepare(recipe, *options, status=2)
    assert "train-clean-100.tar.gz: " in done.stderr and "checksum is not" in done.stderr
    got = recipe / "corpus/LibriSpeech"
    assert sorted(path.name for path in got.iterdir()) == ["SPEAKERS.TXT", "test-clean"]
    broken.write_bytes(whole)
    part = recipe / "downloads/train-clean-100.tar.gz.part"
    part.write_bytes(whole[:100])  # which this server, without ranges, cannot complete
    done = prepare(recipe, *options)
    assert not part.exists()
    assert "test-clean.tar.gz" not in done.stdout  # it was there
    assert set(table(recipe / "data/train/spk2gender")) == {"19"}
    assert files(got / "test-clean") == files(tmp_path / "LibriSpeech/test-clean")
    shutil.rmtree(got)
    (recipe / "downloads/test-clean.tar.gz").write_bytes(b"cut")
    assert "test-clean.tar.gz: its digest is not" in prepare(recipe, *options, status=2).stderr
    listed.write_text("")
    assert "md5sum.txt: no MD5 digest of " in prepare(recipe, *options, status=2).stderr


@pytest.mark.slow
def test_either_evaluation_of_vctk_can_be_run_first(tree):
    """Both are made at once, and the second run finds them up to date."""
    small = tree("vctk")
    (small.recipe / "run.sh").symlink_to(ROOT / "egs/TEMPLATE/run.sh")
    for part in ("encoders", "systems"):
        (small.recipe / "conf" / part).unlink()
        (small.recipe / "conf" / part).symlink_to(ROOT / "egs/TEMPLATE/conf" / part)
    said = []
    for evaluation in ("vctk_test_common", "vctk_test"):
        command = ["./run.sh", "--stop-stage", "0", "--corpus", str(small.root)]
        command += ["--evaluation", evaluation]
        command += ["--prepare-options=--speakers 2 --enrol-utts 2"]
        run_words(command, 0, cwd=small.recipe)
        said.append((small.recipe / "exp/steps.log").read_text())
    assert "making data/train" in said[0] and "up to date: data/train" in said[1]


# Options, what is said, and of some sets the numbers of speakers, utterances, target and nontarget
# trials.
Counts = dict[str, tuple[int, int, tuple[int, int]]]
EXCERPTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Counts]] = {
    "an4": ((), ("575 read / 575 written / 0 skipped; 45 speakers, 0.444 h",), {
        "train": (25, 0, (0, 0)), "an4_test_trials_f": (10, 0, (0, 0)),
        "an4_test_trials_m": (10, 0, (0, 0))}),
    "emodb": ((), ("263 read / 263 written / 0 skipped; 8 speakers, 0.202 h",), {}),
    "fsdd": ((), ("300 read / 300 written / 0 skipped; 6 speakers, 0.036 h",), {
        "fsdd_test_trials_m": (4, 160, (160, 480))}),
    "librispeech": (("--lists", "vpc2020_libri_test/data"), (
        "eval: 336 read / 336 written / 0 skipped; 26 speakers",
        "data/train: 438 read / 438 written / 0 skipped; 266 speakers",
        "target trials         f 548 -> 99        m 449 -> 72",
        "nontarget trials      f 11196 -> 1210    m 9457 -> 904"), {
        "libri_test_enrolls": (19, 95, (0, 0)), "libri_test_trials_f": (13, 0, (99, 1210)),
        "libri_test_trials_m": (13, 0, (72, 904))}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize("name", EXCERPTS)
def test_the_excerpt(tmp_path, corpora, name):
    options, said, counts = EXCERPTS[name]
    recipe = make_recipe(tmp_path / "recipe", name)
    asked = [str(corpora / word) if "/" in word else word for word in options]
    done = prepare(recipe, "--corpus", corpora / name, *asked)
    assert all(words in done.stdout for words in said)
    for part, (n_speakers, n_utts, trials) in counts.items():
        data = load_data_dir(recipe / "data" / part)
        assert len(data.spk2utt) == n_speakers
        assert n_utts in (0, len(data.utt2spk))
        assert trials in ((0, 0), targets(data))
        assert name != "an4" or part == "train" or len(data.trials or []) == 10 * len(data.utt2spk)
    train = load_data_dir(recipe / "data/train")
    evaluated = {spk for spk, _ in map(str.split, sum_lines(recipe, "*_enrolls/utt2spk"))}
    assert train.spk2utt.keys().isdisjoint(evaluated)
    if name == "emodb":
        emotions = (line.split()[1] for line in sum_lines(recipe, "*[!d]/utt2emotion"))
        assert Counter(emotions) == {"anger": 100, "neutral": 63, "happiness": 55, "sadness": 45}
    if name == "librispeech":
        hours = sum((train.utt2dur or {}).values()) / 3600
        assert hours == pytest.approx(0.213 + 0.167 + 0.871, abs=0.002)


def sum_lines(recipe: Path, pattern: str) -> list[str]:
    """Lines of a table of all sets that match."""
    paths = (recipe / "data").glob(pattern)
    return [line for path in paths for line in path.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.corpora
def test_the_excerpt_of_vctk(tmp_path, corpora):
    """Four speakers, sentences 1 to 24 only; nobody is left to train with."""
    recipe = make_recipe(tmp_path / "recipe", "vctk")
    options = ("--corpus", corpora / "vctk", "--sentences", "common", "--speakers", 0)
    options += ("--enrol-utts", 4)
    done = prepare(recipe, *options, status=2)
    assert "all: 40 read / 40 written / 0 skipped; 4 speakers" in done.stdout
    assert "no speaker is left to train with" in done.stderr
    for gender, speakers in (("f", {"p225", "p228"}), ("m", {"p226", "p227"})):
        data = load_data_dir(recipe / f"data/vctk_test_common_trials_{gender}")
        assert (targets(data), set(data.spk2utt)) == ((12, 12), speakers)
