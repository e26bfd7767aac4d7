"""Identity indices: the vector of an index, and that no two keys ever share an index."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from steps.generators.identity import (
    END,
    HEADER,
    UsedIndices,
    hashed_index,
    identity_vectors,
    key_name,
    make_assigner,
)
from tests.refusals import refuses
from utils.cli import UserError

ROOT = Path(__file__).resolve().parents[1]

# Assigns names one by one and says each index after it was assigned.
WORKER = """
import sys
from pathlib import Path
from steps.generators.identity import UsedIndices, key_name
path, worker, number, first, size = sys.argv[1], *map(int, sys.argv[2:])
used = UsedIndices(Path(path))
for item in range(number):
    names = [key_name(0, 0, ("utt", owner, str(item))) for owner in ("all", str(worker))]
    for name, index in zip(names, used.assign(names, first, size)):
        print(f"{index}\\t{name}", flush=True)
"""


def start(path: Path, worker: int, number: int, first: int, size: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), *map(str, (worker, number, first, size))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def whole_lines(text: str) -> list[tuple[int, str]]:
    pairs = (line.split("\t") for line in text.splitlines(keepends=True) if line.endswith("\n"))
    return [(int(index), name.rstrip("\n")) for index, name in pairs]


def test_a5_the_vector_of_an_index_is_the_same_in_a_new_process_and_any_order() -> None:
    indices = np.array([7, 2**62, 0, 12345])
    vectors = identity_vectors(indices, 512, "gaussian")
    np.testing.assert_array_equal(identity_vectors(indices[::-1], 512, "gaussian"), vectors[::-1])
    code = (
        "import sys, numpy as np; from steps.generators.identity import identity_vectors as f; "
        "sys.stdout.buffer.write(f(np.array([2**62]), 512, 'gaussian').tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == vectors[1].tobytes()


def test_an_identity_vector_is_pcg64_seeded_with_the_index_and_normalised_by_vector() -> None:
    raw = np.random.Generator(np.random.PCG64(41)).uniform(-1, 1, 100)
    expected = (raw - raw.mean()) / raw.std()
    got = identity_vectors(np.array([41]), 100, "uniform")[0]
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert np.abs(got).max() < 2  # sqrt(3) for a uniform distribution, not for a normal one
    assert np.abs(identity_vectors(np.array([41]), 1000, "gaussian")[0]).max() > 2.5


def test_a_key_keeps_its_index_and_seed_draw_and_key_all_count() -> None:
    names = [
        key_name(seed, draw, parts)
        for seed in (0, 1)
        for draw in (0, 1)
        for parts in (("utt", "a", "b"), ("utt", "ab"), ("spk", "a", "b"), ('"', "\t", "é\n"))
    ]
    assign = make_assigner(None, 250, None)
    indices = assign(names)
    assert len(set(indices)) == len(names)
    assert assign(names[::-1]) == indices[::-1]
    assert all(250 <= index < END for index in indices)
    assert all("\t" not in name and "\n" not in name and name.isascii() for name in names)


def test_a_small_range_is_used_up_to_its_last_index(tmp_path: Path) -> None:
    used = UsedIndices(tmp_path / "used")
    names = [key_name(0, 0, (str(item),)) for item in range(300)]
    indices = used.assign(names, 250, 300)
    assert sorted(indices) == list(range(250, 550))
    with pytest.raises(UserError, match="all 300 identity indices are in use"):
        used.assign([key_name(0, 0, ("one more",))], 250, 300)
    assert UsedIndices(tmp_path / "used").assign(names[::-1], 250, 300) == indices[::-1]


def test_with_a_file_an_index_is_the_hash_unless_another_key_has_it(tmp_path: Path) -> None:
    names = [key_name(0, 0, (str(item),)) for item in range(20)]
    free = make_assigner(None, 10, None)(names)
    assert make_assigner(tmp_path / "used", 10, None)(names) == free
    taken = hashed_index(names[0], 0, 10, 1000)
    (tmp_path / "small").write_bytes(HEADER + f'{taken}\t["x"]\n'.encode())
    assert UsedIndices(tmp_path / "small").assign(names[:1], 10, 1000) != [taken]


def test_processes_that_assign_at_once_share_keys_and_never_indices(tmp_path: Path) -> None:
    """A range that is as small as possible, so that they collide all the time."""
    n_workers, number = 8, 40
    size = (n_workers + 1) * number
    workers = [start(tmp_path / "used", w, number, 5, size) for w in range(n_workers)]
    pairs = [pair for worker in workers for pair in whole_lines(worker.communicate()[0])]
    assert [worker.returncode for worker in workers] == [0] * n_workers
    assert len(pairs) == 2 * n_workers * number
    assert len(set(pairs)) == size  # equal names have equal indices
    assert sorted({index for index, _ in pairs}) == list(range(5, 5 + size))


@pytest.mark.slow
def test_killed_processes_leave_a_file_in_which_all_that_was_said_holds(tmp_path: Path) -> None:
    path = tmp_path / "used"
    said: list[tuple[int, str]] = []
    rng = np.random.default_rng(0)
    for round_ in range(4):
        workers = [start(path, 10 * round_ + w, 5000, 5, END - 5) for w in range(3)]
        while not path.exists() or path.stat().st_size < 3000 * (round_ + 1):
            time.sleep(0.005)
        for worker in workers:
            time.sleep(rng.uniform(0, 0.02))
            os.kill(worker.pid, signal.SIGKILL)
            said += whole_lines(worker.communicate()[0])
        with path.open("ab") as stream:  # what a death in the middle of a write would leave
            stream.write(b'99\t[0, 0, "torn'[: 3 + 4 * round_])
    owners = dict(said)
    assert len(said) > 100
    assert all(owners[index] == name for index, name in said)  # an index was said for one name
    used = UsedIndices(path)
    assert used.assign([name for _, name in said], 5, END - 5) == [index for index, _ in said]
    lines = path.read_bytes().split(b"\n")
    assert lines[0] + b"\n" == HEADER and lines[-1] == b""
    indices = [int(line.split(b"\t")[0]) for line in lines[1:-1]]
    assert len(set(indices)) == len(indices)


def test_a_last_line_without_its_end_is_kept_where_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "used"
    path.write_bytes(HEADER + b'77\t["a"]')
    used = UsedIndices(path)
    assert used.assign(['["a"]', '["b"]'], 0, 1000)[0] == 77
    assert path.read_bytes().startswith(HEADER + b'77\t["a"]\n')
    path.write_bytes(HEADER[:9])  # the first writer died
    assert UsedIndices(path).assign(['["a"]'], 0, 1000) == [hashed_index('["a"]', 0, 0, 1000)]
    assert path.read_bytes().startswith(HEADER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"utt1 0.8\n", ":1: not a file of used indices"),
        (HEADER + b'5\t["a"]\n5\t["b"]\n', ":3: index 5 or its name is there twice"),
        (HEADER + b'5\t["a"]\n6\t["a"]\n', ":3: index 6 or its name is there twice"),
        (HEADER + b'x\t["a"]\n6\t["b"]\n', ":2: not an index"),
        (HEADER + b'5\t["a"\n6\t["b"]\n', ":2: not an index"),
        (HEADER + '5\t["é"]\n'.encode(), ":2: not an index"),
    ],
)
def test_a_bad_file_is_told_with_its_line_and_left_alone(
    tmp_path: Path, text: bytes, message: str
) -> None:
    path = tmp_path / "used"
    path.write_bytes(text)
    for _ in range(2):  # the second time, too
        with pytest.raises(UserError, match=message):
            UsedIndices(path).assign(['["c"]'], 0, 1000)
    assert path.read_bytes() == text


def test_an_index_of_another_number_of_training_speakers_is_refused(tmp_path: Path) -> None:
    """Index 15, free for ten training speakers, is a real voice where there are 250."""
    path = tmp_path / "used"
    path.write_bytes(HEADER + b'15\t["a"]\n')
    assert UsedIndices(path).assign(['["a"]'], 10, 1000) == [15]
    with pytest.raises(UserError, match="has index 15, and this generator has 250 to"):
        UsedIndices(path).assign(['["a"]'], 250, 1000)


def test_a_range_without_a_file_and_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    refuses("needs a file of used ones", make_assigner, None, 0, 1000)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        make_assigner(tmp_path / "file" / "used", 0, None)([json.dumps([1])])
