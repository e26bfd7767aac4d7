"""Downloads against a real HTTP server on this machine: resuming, broken transfers, checksums."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.corpus_trees import serving
from tests.refusals import refuses
from utils.cli import UserError
from utils.download import download, read_checksum

ROOT = Path(__file__).resolve().parents[1]
CONTENT = bytes(range(256)) * 4000  # 1,024,000 bytes
MD5 = hashlib.md5(CONTENT).hexdigest()


@dataclass
class Server:
    """How badly the server serves. `cuts`: for each request to come, bytes until it hangs up."""

    url: str = ""
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)  # the Range header of each request


def make_handler(state: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            if state.statuses:
                self.send_error(state.statuses.pop(0))
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and state.ranges else 0
            beyond = start >= len(CONTENT)
            span = f"{'*' if beyond else f'{start}-{len(CONTENT) - 1}'}/{len(CONTENT)}"
            self.send_response(416 if beyond else 206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {span}")
            self.send_header("Content-Length", str(max(0, len(CONTENT) - start)))
            self.end_headers()
            cut = state.cuts.pop(0) if state.cuts else len(CONTENT)
            self.wfile.write(CONTENT[start : start + cut])

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    with serving(make_handler(state)) as url:
        state.url = f"{url}/corpus.tar.gz"
        yield state


def fetch(server: Server, target: Path, checksum: str | None = MD5, tries: int = 3) -> bool:
    return download(server.url, target, checksum=checksum, tries=tries, pause=0.0)


def test_whole_file_then_nothing_to_do(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "new" / "corpus.tar.gz"
    assert fetch(server, target)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["corpus.tar.gz"]
    assert not fetch(server, target)
    assert server.asked == [None]


# What an earlier run left, how the server serves, whether the checksum is known, and what is asked.
PARTS: dict[str, tuple[bytes, dict[str, object], bool, list[str | None]]] = {
    "an earlier run's": (CONTENT[:700_000], {}, True, ["bytes=700000-"]),
    "without ranges": (b"another beginning", {"ranges": False}, True, ["bytes=17-"]),
    "whole": (CONTENT, {}, True, ["bytes=1024000-"]),
    "longer": (CONTENT + b"z" * 5, {}, True, ["bytes=1024005-", None]),
    "not trusted without a checksum": (b"q" * 1000, {}, False, [None]),
    # That a server hangs up early is no error to http.client: the length must be compared.
    "truncated": (b"", {"cuts": [300_000, 300_000]}, False,
                  [None, "bytes=300000-", "bytes=600000-"]),
    "of a busy server": (b"", {"statuses": [503, 503]}, True, [None] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_continued_or_begun_again(server: Server, tmp_path: Path, name: str) -> None:
    part, how, known, asked = PARTS[name]
    if part:
        (tmp_path / "x.part").write_bytes(part)
    vars(server).update(how)
    assert fetch(server, tmp_path / "x", checksum=MD5 if known else None)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.asked == asked


def test_gives_up_keeps_the_part_and_goes_on_later(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000] + [0] * 20
    refuses(r"300000 bytes are in .*x\.part, run again to go on", fetch, server, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    server.cuts = []
    assert fetch(server, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_checksum_mismatch_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"1024000 bytes came, but their checksum is not 0000"):
        fetch(server, tmp_path / "x", checksum="0" * 32)
    assert list(tmp_path.iterdir()) == []


def test_part_of_another_file_is_found_by_the_checksum(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"q" * 1000)
    refuses("checksum", fetch, server, tmp_path / "x")
    assert fetch(server, tmp_path / "x")  # the bad part is gone


def test_file_there_with_a_wrong_checksum_is_kept_and_refused(server, tmp_path):
    (tmp_path / "x").write_bytes(b"half a corpus")
    refuses("is there with a wrong checksum", fetch, server, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"half a corpus"


def test_a_missing_file_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    server.statuses = [404]
    refuses("HTTP 404", fetch, server, tmp_path / "y")
    assert len(server.asked) == 1


def test_no_server_and_other_schemes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/x: .*refused"):
        download("http://127.0.0.1:9/x", tmp_path / "x", tries=2, pause=0.0)
    refuses("only http", download, f"file://{ROOT}/LICENSE", tmp_path / "x")


def test_list_of_checksums(tmp_path: Path) -> None:
    sums = tmp_path / "sums"
    sums.write_text(f"{MD5.upper()}  ./a.gz\n{'0' * 64} *b.gz\n")
    assert read_checksum(sums, "a.gz") == MD5
    assert read_checksum(sums, "b.gz") == "0" * 64
    refuses(r"no checksum for c\.gz", read_checksum, sums, "c.gz")
    sums.write_text("abc  a.gz\n")
    refuses(r"sums:1: 'abc' is neither", read_checksum, sums, "a.gz")


def test_program_says_what_it_did_in_one_line(server: Server, tmp_path: Path, run_program) -> None:
    (tmp_path / "sums").write_text(f"{MD5}  x\n{'1' * 32}  y\n")
    words = ("utils/download.py", "--checksums", tmp_path / "sums", server.url)
    done = run_program(*words, tmp_path / "x", status=0)
    assert (done.stdout, done.stderr) == (
        f"{tmp_path}/x: fetched, 1024000 bytes, checksum right\n", ""
    )  # fmt: skip
    bad = run_program(*words, tmp_path / "y", status=2)
    assert bad.stderr.count("\n") == 1 and "checksum is not 1111" in bad.stderr
