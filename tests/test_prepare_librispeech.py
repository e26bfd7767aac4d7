"""egs/librispeech/prepare.sh on small trees in LibriSpeech's layout, and on real speech."""

import functools
import hashlib
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.corpus_trees import files, make_recipe, prepare, table, write_audio
from utils.datadir import load_data_dir

GENDER = {"61": "F", "121": "F", "1089": "M", "908": "M", "84": "F", "174": "M", "19": "F"}
SUBSET = {"61": "test-clean", "121": "test-clean", "1089": "test-clean", "908": "test-clean",
          "84": "dev-clean", "174": "dev-clean", "19": "train-clean-100"}  # fmt: skip
SETS = (
    "train",
    "libri_test_enrolls",
    "libri_test_trials_f",
    "libri_test_trials_m",
    "libri_test_trials_mixed",
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make_recipe(tmp_path / "recipe", "librispeech")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """7 speakers, 2 chapters, 3 utterances each, in a folder with blanks and `=` in its name."""
    root = tmp_path / "my = corpora" / "LibriSpeech"
    for spk, subset in SUBSET.items():
        for chapter in ("100", "200"):
            folder = root / subset / spk / chapter
            utts = [f"{spk}-{chapter}-{number:04d}" for number in range(3)]
            for utt in utts:
                write_audio(folder / f"{utt}.flac")
            lines = [f"{utt} SPOKEN BY {spk} IT'S {utt[-1]}" for utt in utts]
            # Without a last line end, as an editor may leave it: must not run into the next file.
            (folder / f"{spk}-{chapter}.trans.txt").write_text("\n".join(lines))
    write_speakers(root, GENDER)
    (root / "original-mp3").mkdir()
    return root


def write_speakers(root: Path, gender: dict[str, str]) -> None:
    lines = ["; Some pipe(|) separated metadata", ";ID  |SEX| SUBSET           |MINUTES| NAME"]
    lines += [f"{s:<4} | {g} | {SUBSET[s]:<16} | 25.03 | A. | B" for s, g in gender.items()]
    (root / "SPEAKERS.TXT").write_text("\n".join(lines) + "\n")


def one_line(done: "object", status: int = 2) -> str:
    """The only line of a failed prepare.sh's messages that is not a count of what was found."""
    assert done.returncode == status  # type: ignore[attr-defined]
    lines = [x for x in done.stderr.splitlines() if "published:" not in x]  # type: ignore[attr-defined]
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.slow
def test_sets_made_and_made_again(recipe: Path, corpus: Path) -> None:
    options = ("--corpus", corpus, "--enrol-utts", 2, "--nj", 3)
    done = prepare(recipe, *options)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (recipe / "data").iterdir()) == sorted(SETS)
    for name in SETS:
        data = load_data_dir(
            recipe / "data" / name, need=("wav.scp", "utt2dur", "spk2gender", "text")
        )
        assert {s: GENDER[s].lower() for s in data.spk2utt} == data.spk2gender
        for utt, spk in data.utt2spk.items():
            assert (data.text or {})[utt] == f"SPOKEN BY {spk} IT'S {utt[-1]}"
            assert data.wav[utt] == str(
                corpus / SUBSET[spk] / spk / utt.split("-")[1] / f"{utt}.flac"
            )
            assert (data.utt2dur or {})[utt] == 0.2
    train = table(recipe / "data/train/spk2gender")
    assert train == {"84": "f", "174": "m", "19": "f"}
    enrol = table(recipe / "data/libri_test_enrolls/utt2spk")
    trial = table(recipe / "data/libri_test_trials_f/utt2spk")
    assert len(enrol) == 4 * 2 and len(trial) == 2 * 3
    # Enrolment and trials come from different chapters, as in the official lists.
    chapter = {utt.rpartition("-")[0] for utt in enrol}
    assert not chapter & {utt.rpartition("-")[0] for utt in trial}
    assert "test-clean: 24 utterances; published: 2620" in done.stderr
    assert "4 of 24 utterances are in no list" in done.stdout
    # Again, over what an interrupted run left: the same bytes, and nothing else.
    before = files(recipe / "data")
    (recipe / "data/.prepare").mkdir()
    (recipe / "data/.prepare/eval.tsv").write_text("half a tab")
    (recipe / "data/train/wav.scp").unlink()
    assert prepare(recipe, *options).returncode == 0
    assert files(recipe / "data") == before
    # Another seed draws others; the training set is the same.
    assert prepare(recipe, *options, "--seed", 5).returncode == 0
    after = files(recipe / "data")
    assert after["libri_test_enrolls/utt2spk"] != before["libri_test_enrolls/utt2spk"]
    assert after["train/utt2spk"] == before["train/utt2spk"]


@pytest.mark.slow
def test_official_lists_and_chosen_subsets(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    made = prepare(recipe, "--corpus", corpus, "--enrol-utts", 2)
    assert made.returncode == 0, made.stderr
    lists = tmp_path / "lists"
    (recipe / "data").rename(lists)
    gone = table(lists / "libri_test_enrolls/enrolls")
    utt = next(utt for utt in gone if utt.startswith("61-"))
    chapter = corpus / "test-clean/61" / utt.split("-")[1]
    (chapter / f"{utt}.flac").unlink()
    trans = chapter / f"61-{utt.split('-')[1]}.trans.txt"
    lines = trans.read_text().splitlines()
    trans.write_text("".join(f"{line}\n" for line in lines if not line.startswith(utt)))
    options = ("--corpus", corpus, "--lists", lists, "--train-subsets", "dev-clean")
    done = prepare(recipe, *options)
    assert done.returncode == 0, done.stderr
    assert "enrolment utterances  f 4 -> 3           m 4 -> 4" in done.stdout
    assert table(recipe / "data/libri_test_enrolls/enrolls") == {u: "" for u in gone if u != utt}
    assert (recipe / "data/libri_test_trials_m/trials").read_text() == (
        lists / "libri_test_trials_m/trials"
    ).read_text()
    assert set(table(recipe / "data/train/spk2gender")) == {"84", "174"}
    bad = prepare(recipe, "--corpus", corpus, "--lists", lists / "train")
    assert "libri_test_enrolls: no such folder" in one_line(bad)


@pytest.mark.slow
def test_losses_are_named_counted_and_refused(recipe: Path, corpus: Path) -> None:
    dev = corpus / "dev-clean"
    (dev / "84/100/84-100-0000.flac").write_bytes(b"")  # zero length
    (dev / "84/100/84-100-0001.flac").write_bytes(b"no FLAC at all")
    (dev / "84/100/84-100-0002.flac").unlink()  # transcript without audio
    trans = dev / "84/200/84-200.trans.txt"
    trans.write_text(trans.read_text().replace("84-200-0001 ", "84-200-0009 "))
    write_speakers(corpus, {spk: g for spk, g in GENDER.items() if spk != "174"})
    options = ("--corpus", corpus, "--enrol-utts", 2)
    done = prepare(recipe, *options)
    assert done.returncode == 3
    lines = [line for line in done.stderr.splitlines() if "published" not in line]
    audio = "cannot be read as audio: Format not recognised."
    folder, where = dev / "84/100", f"{corpus}/SPEAKERS.TXT"
    name = "make_data_dir.py"
    assert lines[:-1] == [
        *(
            f"{name}: 174-{c}-000{n}: speaker 174 is not in {where}"
            for c in (100, 200)
            for n in "012"
        ),
        f"{name}: 84-100-0000: {folder}/84-100-0000.flac {audio}",
        f"{name}: 84-100-0001: {folder}/84-100-0001.flac {audio}",
        f"{name}: 84-100-0002: there is no audio file for it",
        f"{name}: 84-200-0001: there is no transcript for {dev}/84/200/84-200-0001.flac",
        f"{name}: 84-200-0009: there is no audio file for it",
    ]
    assert lines[-1] == (
        f"{name}: data/train: not written: 11 of 19 utterances cannot be used (6 for the gender, 4 "
        "for the audio, 1 for the transcript); correct the corpus, or allow the loss: "
        "--allow-loss 11"
    )
    assert not (recipe / "data/train").exists() and not (recipe / "data/.prepare").exists()
    done = prepare(recipe, *options, "--allow-loss", 11)
    assert done.returncode == 0, done.stderr
    assert "data/train: 19 read / 8 written / 11 skipped (6 for the gender" in done.stdout
    assert set(table(recipe / "data/train/utt2spk").values()) == {"84", "19"}


def test_folders_that_are_not_librispeech(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    assert "--corpus is missing" in one_line(prepare(recipe))
    assert "nowhere: no such folder" in one_line(prepare(recipe, "--corpus", "nowhere"))
    (tmp_path / "empty").mkdir()
    empty = one_line(prepare(recipe, "--corpus", tmp_path / "empty"))
    assert "empty/SPEAKERS.TXT is missing" in empty
    typo = one_line(prepare(recipe, "--corpus", corpus, "--train-subsets", "dev-claen"))
    assert "dev-claen: no such folder" in typo
    for name in ("100", "200"):  # the layout changed: audio of another format
        for path in (corpus / "train-clean-100/19" / name).glob("*.flac"):
            path.rename(path.with_suffix(".mp3"))
    assert "train-clean-100: holds no <speaker>" in one_line(prepare(recipe, "--corpus", corpus))
    shutil.rmtree(corpus / "train-clean-100")
    for path in (corpus / "dev-clean").rglob("*.trans.txt"):
        path.unlink()
    lost = one_line(prepare(recipe, "--corpus", corpus))
    assert "dev-clean: holds no" in lost and "trans.txt" in lost
    shutil.rmtree(corpus / "dev-clean")
    assert "has no subset but test-clean" in one_line(prepare(recipe, "--corpus", corpus))
    assert not any((recipe / "data").iterdir())


def test_ids_that_are_there_twice(recipe: Path, corpus: Path) -> None:
    shutil.copytree(corpus / "test-clean/61", corpus / "train-clean-100/61")
    shared = one_line(prepare(recipe, "--corpus", corpus))
    assert "1 speakers are in test-clean and in the training subsets" in shared
    assert shared.endswith(", such as 61")
    shutil.move(corpus / "train-clean-100/61/100/61-100-0001.flac", corpus / "test-clean/61/200")
    shutil.rmtree(corpus / "train-clean-100/61")
    twice = one_line(prepare(recipe, "--corpus", corpus))
    assert "61-100-0001: is there twice: " in twice and twice.endswith("keep one of them")
    assert not any((recipe / "data").iterdir())


@pytest.fixture
def openslr(tmp_path: Path, corpus: Path) -> Iterator[tuple[str, Path]]:
    """A server with the subsets packed as OpenSLR packs them, and its folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    for subset in set(SUBSET.values()):
        with tarfile.open(folder / f"{subset}.tar.gz", "w:gz") as archive:
            for name in ("SPEAKERS.TXT", subset):
                archive.add(corpus / name, f"LibriSpeech/{name}")
    handler = functools.partial(QuietHandler, directory=str(folder))
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", folder
    http.shutdown()
    thread.join()
    http.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.slow
def test_download(recipe: Path, openslr: tuple[str, Path]) -> None:
    url, served = openslr
    sums = {p.name: hashlib.md5(p.read_bytes()).hexdigest() for p in served.iterdir()}
    listed = recipe / "conf/md5sum.txt"
    listed.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    options = ("--download", "true", "--url", url, "--enrol-utts", 2)
    broken = served / "train-clean-100.tar.gz"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-10])
    done = prepare(recipe, *options)
    assert done.returncode == 2
    assert "train-clean-100.tar.gz: " in done.stderr and "checksum is not" in done.stderr
    got = recipe / "corpus/LibriSpeech"
    assert sorted(path.name for path in got.iterdir()) == ["SPEAKERS.TXT", "test-clean"]
    broken.write_bytes(whole)
    done = prepare(recipe, *options)
    assert done.returncode == 0, done.stderr
    assert "test-clean.tar.gz" not in done.stdout  # it was there
    assert set(table(recipe / "data/train/spk2gender")) == {"19"}
    assert files(got / "test-clean").keys() == {
        str(path.relative_to(served.parent / "my = corpora/LibriSpeech/test-clean"))
        for path in (served.parent / "my = corpora/LibriSpeech/test-clean").rglob("*.*")
    }


def test_official_digests_of_all_archives() -> None:
    listed = table(Path(__file__).resolve().parents[1] / "egs/librispeech/conf/md5sum.txt")
    assert len(listed) == 7 and {len(digest) for digest in listed} == {32}


@pytest.mark.slow
@pytest.mark.corpora
def test_the_excerpt_with_the_official_lists(recipe: Path, corpora: Path) -> None:
    lists = corpora / "vpc2020_libri_test/data"
    done = prepare(recipe, "--corpus", corpora / "librispeech", "--lists", lists)
    assert done.returncode == 0, done.stderr
    assert "eval: 336 read / 336 written / 0 skipped; 26 speakers" in done.stdout
    assert "data/train: 438 read / 438 written / 0 skipped; 266 speakers" in done.stdout
    assert "target trials         f 548 -> 99        m 449 -> 72" in done.stdout
    assert "nontarget trials      f 11196 -> 1210    m 9457 -> 904" in done.stdout
    for gender, target, nontarget in (("f", 99, 1210), ("m", 72, 904)):
        data = load_data_dir(recipe / f"data/libri_test_trials_{gender}")
        labels = [label for _, _, label in data.trials or []]
        assert (labels.count("target"), labels.count("nontarget")) == (target, nontarget)
        assert len(data.spk2utt) == 13
    enrol = load_data_dir(recipe / "data/libri_test_enrolls")
    assert (len(enrol.spk2utt), len(enrol.enrolls or [])) == (19, 95)
    seconds = sum((load_data_dir(recipe / "data/train").utt2dur or {}).values())
    assert seconds / 3600 == pytest.approx(0.213 + 0.167 + 0.871, abs=0.002)
