"""utils/archives.py: what it writes is Kaldi's, and no damaged archive is read without an error."""

import pickle
from pathlib import Path

import kaldiio
import numpy as np
import pytest

from tests.refusals import refuses, refuses_file
from utils.archives import (
    ArchiveWriter,
    ObjectReader,
    read_counts,
    read_object,
    read_vectors,
    write_archive,
    write_object,
)
from utils.cli import UserError

pytestmark = pytest.mark.usefixtures("here")
VECTORS = {"b-2": np.array([1.5, -2.0, 0.1]), "a": np.ones(3), "é-1": np.zeros(3)}


@pytest.mark.parametrize("stem", ["exp/xvector", "a,b/d [1:2] e/xvector.1"])
def test_archives_are_kaldis_whatever_the_path(stem):
    write_archive(stem, VECTORS)
    for vectors in (read_vectors(f"{stem}.scp"), read_vectors(f"{stem}.ark")):
        assert vectors.keys() == VECTORS.keys()
        for key, vector in VECTORS.items():
            assert vectors[key].dtype == np.float32
            np.testing.assert_array_equal(vectors[key], vector.astype(np.float32))
    for key, vector in kaldiio.load_ark(f"{stem}.ark"):
        np.testing.assert_array_equal(vector, VECTORS[key].astype(np.float32))
    lines = Path(f"{stem}.scp").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["a", "b-2", "é-1"]  # C order, not ark's order
    assert lines[1] == f"b-2 {stem}.ark:4"
    assert [p.name for p in Path(stem).parent.iterdir() if ".tmp." in p.name] == []


def test_kaldiios_archives_are_read():
    kaldiio.save_ark("b.ark", VECTORS, scp="b.scp")
    kaldiio.save_ark("t.ark", VECTORS, text=True)
    matrices = {"x": np.arange(6.0).reshape(2, 3), "y": np.ones((1, 3), np.float32)}
    kaldiio.save_ark("m.ark", matrices, scp="m.scp")
    kaldiio.save_ark("mt.ark", matrices, scp="mt.scp", text=True)
    for path in ("b.scp", "b.ark", "t.ark"):
        for key, vector in read_vectors(path).items():
            np.testing.assert_allclose(vector, VECTORS[key], rtol=1e-6)
    for path in ("m.scp", "mt.scp"):
        read = ObjectReader(path)
        assert list(read) == ["x", "y"]
        np.testing.assert_array_equal(read.matrix("x"), matrices["x"])
        assert read.matrix("y").shape == (1, 3)


def test_text_vectors_of_whole_numbers_and_nan_are_read():
    Path("t.ark").write_text("a  [ 1 2 3 ]\nb  [ nan 2 3 ]\n")
    np.testing.assert_array_equal(read_vectors("t.ark", check_finite=False)["a"], [1, 2, 3])
    refuses(r"t\.ark: b: .*not a finite number", read_vectors, "t.ark")


def test_ranges_include_their_last_row():
    matrix = np.arange(12.0).reshape(4, 3)
    kaldiio.save_ark("m.ark", {"x": matrix}, scp="m.scp")
    name = Path("m.scp").read_text().split()[1]
    Path("r.scp").write_text(f"r {name}[1:2]\nc {name}[:,0:1]\nrc {name}[0:3,2:2]\n")
    read = ObjectReader("r.scp")
    np.testing.assert_array_equal(read.matrix("r"), matrix[1:3])
    np.testing.assert_array_equal(read.matrix("c"), matrix[:, :2])
    np.testing.assert_array_equal(read.matrix("rc"), matrix[:, 2:])
    Path("r.scp").write_text(f"r {name}[1:4]\n")
    message = r"r\.scp: r: the range \[1:4\] does not fit a 4 x 3 matrix"
    refuses(message, ObjectReader("r.scp").matrix, "r")


def test_num_utts_ark_of_small_counts_is_read_as_a_table():
    """kaldiio reads `s1 3, s2 12` as s2 -> [2, 12] and stops on a third line."""
    Path("num_utts.ark").write_text("s1 3\ns2 12\n007 1\n")
    counts = read_counts("num_utts.ark")
    assert counts == {"s1": 3, "s2": 12, "007": 1}
    for bad in ("s1 0\n", "s1 1.5\n", "s1 2 3\n", "s1 1\ns1 1\n", "s1 -1\n"):
        refuses_file(r"num_utts\.ark:", read_counts, "num_utts.ark", bad)


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("pwned"),))


def test_pickles_are_refused_and_never_loaded():
    Path("p.ark").write_bytes(b"a PKL" + pickle.dumps(Bomb()))
    Path("p.scp").write_text("a p.ark:2\n")
    for path in ("p.ark", "p.scp"):
        refuses(rf"{path}: a.*pickle", read_vectors, path)
    assert not Path("pwned").exists()


def test_pipes_are_refused_and_not_run():
    write_archive("x", VECTORS)
    for pipe in ("touch ran; cat x.ark |", "| touch ran"):
        Path("p.scp").write_text(f"b-2 {pipe}\n")
        for read in (read_vectors, lambda path: ObjectReader(path).vector("b-2")):
            refuses(r"p\.scp: b-2: .*is a pipe", read, "p.scp")
    assert not Path("ran").exists()


def test_every_cut_of_an_archive_is_an_error():
    """A vector cut at a whole number is taken for a shorter one by kaldiio."""
    write_archive("x", {"a": np.arange(1.0, 4.0)})
    whole = Path("x.ark").read_bytes()
    for length in range(1, len(whole)):
        Path("x.ark").write_bytes(whole[:length])
        for path in ("x.ark", "x.scp"):
            refuses(rf"^{path}: ", read_vectors, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a  [ 1 2 ]\na  [ 1 2 ]\n", "a is listed twice"),
        (b"a  [ 1 2 ]\nb  [ 1 2 3 ]\n", "b: length 3, but a has 2"),
        (b"a  [\n 1 2\n 3 4 ]\n", "a: a 2 x 2 matrix where a vector is expected"),
        (b"a  [ ]\n", "a: an empty object where a vector"),
        (b"a 3\n", "a: truncated, or no vector"),
        (b"a  [ 1 x ]\n", "a: a word that is not a number"),
        (b"a \0B\4\1\0\0\0\4\1\0\0\0", "a: holds integers"),
        (b"a AUDIOxx", "a: holds audio"),
        (b"\xff\xfe a", "no key at byte"),
        (b"nothing-but-a-word\n", "no key at byte"),
    ],
)
def test_bad_archives(content, message):
    refuses_file(f"^x.ark: .*{message}", read_vectors, "x.ark", content)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a x.ark:2\na x.ark:2", r"x\.scp:2: a is listed twice"),
        ("a x.ark:2\nb x.ark:2\na x.ark:30", r"x\.scp:3: a is listed twice"),  # not: the last
        ("a gone.ark:2", r"x\.scp: a: gone\.ark: cannot be read: No such file"),
        ("a x.ark:7", r"x\.scp: a \(x\.ark:7\): "),
        ("a x.ark:999", r"x\.scp: a \(x\.ark:999\): truncated"),
        ("a -", "names no file"),
        ("a", "names no file"),
    ],
)  # fmt: skip
def test_bad_scps(line, message):
    write_archive("x", VECTORS)
    refuses_file(message, read_vectors, "x.scp", f"{line}\n")


@pytest.mark.parametrize("key", ["", "a b", "a\tb", "a\n", "a\0"])
def test_a_key_that_would_corrupt_the_archive_is_refused(key):
    refuses("cannot be a key", write_archive, "x", {key: np.ones(2)})
    assert list(Path().iterdir()) == []


def test_a_failed_writer_leaves_the_old_archive_and_nothing_else():
    write_archive("x", {"a": np.ones(2)})
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    with pytest.raises(ZeroDivisionError), ArchiveWriter("x") as writer:
        writer.write("b", np.ones(2))
        raise ZeroDivisionError
    with pytest.raises(UserError, match="nothing to write"), ArchiveWriter("x"):
        pass
    with pytest.raises(UserError, match="a is written twice"), ArchiveWriter("x") as writer:
        writer.write("a", np.ones(2))
        writer.write("a", np.ones(2))
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_object_files_keep_float64_and_are_kaldis():
    vector = np.array([1e-5, 2.0, 3 / 7, -1e300])
    matrix = np.random.default_rng(0).standard_normal((3, 4))
    write_object("mean.vec", vector)
    write_object("transform.mat", matrix)
    np.testing.assert_array_equal(read_object("mean.vec", 1), vector)
    np.testing.assert_array_equal(read_object("transform.mat", 2), matrix)
    np.testing.assert_array_equal(kaldiio.load_mat("transform.mat"), matrix)
    write_object("mean.vec", vector[:3])
    np.testing.assert_allclose(kaldiio.load_mat("mean.vec"), vector[:3], rtol=1e-6)
    refuses(r"mean\.vec: a vector of 3 where a matrix is expected", read_object, "mean.vec", 2)
    refuses("not finite", write_object, "mean.vec", np.array([np.nan]))
    refuses(r"gone\.mat: cannot be read", read_object, "gone.mat", 2)
