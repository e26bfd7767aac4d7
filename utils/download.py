#!/usr/bin/env python3
"""Fetch one file over HTTP(S), go on where an interrupted transfer stopped, and check its digest.

The bytes gather in FILE.part; FILE appears only when it is whole and its digest is the listed
one. CHECKSUMS has `<md5 or sha256 in hex>  <file name>` lines, as md5sum and sha256sum print
them; FILE's name is looked up in it. A file that is there already with the right digest is not
fetched again. Proxies are taken from the environment (http_proxy, https_proxy, no_proxy).
"""

import hashlib
import http.client
import logging
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError
from utils.commands import program
from utils.tables import StrPath, read_rows

LOG = logging.getLogger(__name__)
BLOCK = 1 << 20  # bytes
TIMEOUT = 60.0  # seconds without a byte
ALGORITHMS = {32: "md5", 64: "sha256"}  # by length in hex digits
RETRIED_STATUS = (408, 429, 500, 502, 503, 504)


class _Interrupted(Exception):
    """The transfer broke off; what has come so far is kept and the rest is asked for."""


def read_checksum(path: StrPath, name: str) -> str:
    """The digest that a list of checksums gives for a file name, in lower-case hex."""
    found = None
    for number, (digest, listed) in read_rows(path, 2):
        if len(digest) not in ALGORITHMS or not set(digest.lower()) <= set("0123456789abcdef"):
            raise UserError(f"{path}:{number}: {digest!r} is neither an MD5 nor a SHA-256 in hex")
        if listed.removeprefix("*").removeprefix("./") == name:
            found = digest.lower()
    if found is None:
        raise UserError(f"{path}: no checksum for {name}; add it, or download without --checksums")
    return found


def has_digest(path: StrPath, expected: str) -> bool:
    """Whether a file has the expected MD5 or SHA-256 (told apart by their length)."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, ALGORITHMS[len(expected)]).hexdigest() == expected


def _fetch_rest(url: str, part: Path) -> None:
    """Append what is missing of `part`; start anew where the server cannot continue."""
    offset = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            span = response.headers.get("Content-Range") or ""
            if offset and not (response.status == 206 and span.startswith(f"bytes {offset}-")):
                LOG.info("the server cannot continue a transfer: starting again at the first byte")
                offset = 0
            with part.open("ab" if offset else "wb") as stream:
                _copy(response, stream, offset)
    except urllib.error.HTTPError as error:
        if error.code == 416 and offset:  # nothing left to send: whole, or not this file
            if (error.headers.get("Content-Range") or "").endswith(f"/{offset}"):
                return
            part.unlink()
            raise _Interrupted("the part that is here is not a part of this file") from error
        message = f"HTTP {error.code} {error.reason}"
        if error.code in RETRIED_STATUS:
            raise _Interrupted(message) from error
        raise UserError(f"{url}: {message}") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _Interrupted(f"{type(error).__name__}: {error}") from error
    except urllib.error.URLError as error:
        raise _Interrupted(str(error.reason)) from error


def _copy(response: http.client.HTTPResponse, stream: IO[bytes], done: int) -> None:
    """Append the response to the `done` bytes of a stream; _Interrupted if it ends early."""
    length = response.headers.get("Content-Length") or ""
    total = done + int(length) if length.isdigit() else None  # where the server says it
    reported = time.monotonic()
    while block := response.read(BLOCK):
        stream.write(block)
        done += len(block)
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            share = f" of {total / 1e6:.0f} MB ({100 * done / total:.0f} %)" if total else " MB"
            LOG.info("%.0f%s", done / 1e6, share)
    if total is not None and done < total:  # a dropped connection is no error to http.client
        raise _Interrupted(f"the connection closed at {done} of {total} bytes")


def download(
    url: str, target: StrPath, *, checksum: str | None = None, tries: int = 5, pause: float = 5.0
) -> bool:
    """Fetch `url` into the file `target`; return False when it is there already.

    checksum: expected MD5 or SHA-256 in hex; without it only the length is checked, where the
    server tells it, and what an earlier run left is not continued (it may be of another version
    of the file). tries: transfers in a row that may break off without a new byte. pause: seconds
    between them. Raises UserError when the file is not available, or is not the expected one (its
    bytes are removed).
    """
    if not url.startswith(("http://", "https://")):
        raise UserError(f"{url}: only http:// and https:// addresses are fetched")
    path = Path(target)
    if path.exists():
        if checksum is not None and not has_digest(path, checksum):
            raise UserError(f"{path}: is there with a wrong checksum; remove it and run again")
        return False
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if checksum is None:
            part.unlink(missing_ok=True)
        _fetch_all(url, part, tries, pause)
        if checksum is not None and not has_digest(part, checksum):
            size = part.stat().st_size
            part.unlink()
            raise UserError(
                f"{url}: {size} bytes came, but their checksum is not {checksum}; "
                "they were removed, run again or try another mirror"
            )
        part.replace(path)
    except OSError as error:
        raise UserError(f"{part}: {error.strerror or error}") from error
    return True


def _fetch_all(url: str, part: Path, tries: int, pause: float) -> None:
    """Repeat the transfer until it is whole; give up after `tries` in a row without a byte."""
    idle, size = 0, -1
    while True:
        try:
            _fetch_rest(url, part)
            return
        except _Interrupted as error:
            now = part.stat().st_size if part.exists() else 0
            idle, size = (0 if now > size >= 0 else idle + 1), now
            if idle >= tries:
                raise UserError(
                    f"{url}: {error} ({idle} times); {now} bytes are in {part}, run again to go on"
                ) from error
            LOG.warning("%s: %s; going on in %g s", url, error, pause)
            time.sleep(pause)


@program
def main(
    url: Annotated[str, "The address"],
    file: Annotated[Path, "The file that is written"],
    *,
    checksums: Annotated[Path | None, "The list that has FILE's digest", "CHECKSUMS"] = None,
) -> None:  # fmt: skip
    checksum = read_checksum(checksums, file.name) if checksums else None
    fetched = download(url, file, checksum=checksum)
    checked = "not checked against a checksum" if checksum is None else "checksum right"
    state = "fetched" if fetched else "there already"
    print(f"{file}: {state}, {file.stat().st_size} bytes, {checked}")
