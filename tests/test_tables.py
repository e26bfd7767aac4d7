"""utils/tables.py: files are put in place whole, by their own run, never for a device."""

import os

import numpy as np
import pytest

from steps.audio import write_pcm16
from tests.refusals import refuses
from utils.tables import atomic_write


def test_a_late_orphan_replaced_the_files_of_the_next_run(tmp_path, monkeypatch):
    """15 of 16 files, after the next run had stamped them."""
    own = tmp_path / "exp/.partial.1"
    own.mkdir(parents=True)
    monkeypatch.setenv("PSEUDOVOX_PARTIAL", str(own))
    target = tmp_path / "data/wav/u.wav"
    with atomic_write(target, "wb") as stream:
        stream.write(b"of this run")
    assert target.read_bytes() == b"of this run"
    assert not list(own.iterdir())

    def write_late() -> None:
        with atomic_write(target, "wb") as stream:
            stream.write(b"of an orphan")
            own.rename(tmp_path / "gone")  # the next run has begun

    for write in (write_late, lambda: write_pcm16(target, np.ones(9, dtype=np.int16))):
        refuses(r"u\.wav: ", write)
    assert target.read_bytes() == b"of this run"
    assert [path.name for path in target.parent.iterdir()] == ["u.wav"]


def test_a_device_given_as_output_was_replaced_by_a_file(tmp_path):
    """As root, also /dev/null and /dev/stdout."""
    ours, theirs = os.openpty()
    device = tmp_path / "device"
    device.symlink_to(os.ttyname(theirs))
    with atomic_write(device) as stream:
        stream.write("said")
    assert os.read(ours, 99) == b"said"
    assert device.is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["device"]
    os.close(ours)
    os.close(theirs)
    read, write = os.pipe()
    with atomic_write(f"/dev/fd/{write}") as stream:
        stream.write("to a pipe")
    assert os.read(read, 99) == b"to a pipe"
    os.close(read)
    os.close(write)


def test_a_full_disk_named_no_file(tmp_path):
    (tmp_path / "table").mkdir()
    with pytest.raises(IsADirectoryError) as error, atomic_write(tmp_path / "table"):
        pass
    assert error.value.filename == str(tmp_path / "table")
    full = pytest.raises(OSError, match="No space left")
    with full as error, atomic_write(tmp_path / "full") as stream:
        raise OSError(28, "No space left on device")
    assert error.value.filename == str(tmp_path / "full")
    assert stream.closed
