"""A real browser for the tests of the report: headless Chromium, where there is one."""

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LIMIT

_LIMIT = 1000 * LIMIT  # milliseconds, for whatever Chromium does

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running headless Chromium; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on the PATH (make test-browser installs it)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=list(_FLAGS), timeout=_LIMIT
        )
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(
    running: Any, path: Path, *, width: int = 1280, scheme: str = "light"
) -> Iterator[tuple[Any, list[str]]]:
    """The page in a window, and all that it complained of or asked the network for."""
    context = running.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(_LIMIT)
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))

    def asked(request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            complaints.append(f"asked for {request.url}")

    page.on("request", asked)
    page.goto(path.resolve().as_uri())
    page.wait_for_load_state("load")
    try:
        yield page, complaints
    finally:
        context.close()


_PICTURES = """() => Array.from(document.querySelectorAll("figure")).map(f => {
  const svg = f.querySelector("svg"), box = svg.getBoundingClientRect();
  return {name: f.id, width: box.width, height: box.height, alt: svg.getAttribute("aria-label"),
          marks: svg.querySelectorAll("path, use, image, text").length};})"""


def unfold(page: Any) -> None:
    """Open the details, and what is folded in them."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")


_FEW, _DESK = 4, 1000  # systems that fit with the box below them; width of a desk in pixels
_TALLEST = 20_000  # pixels of an unfolded page on a desk, however many evaluators there are


def check_first_screen(page: Any, width: int) -> None:
    """The verdicts on a few systems, and whether to trust them, need one screen on a desk, two on a
    phone; nothing is cut off, and the details are folded."""
    box = page.locator(".front .box").first.bounding_box()
    few = page.locator(".board tbody tr").count() <= _FEW
    if few:
        assert box["y"] + box["height"] <= (800 if width > _DESK else 1480)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cells = page.locator(".board td").evaluate_all(
        "cells => cells.filter(d => d.getBoundingClientRect().right > innerWidth).length"
    )
    assert cells == 0
    assert not page.locator(".specialists").evaluate("d => d.open")


_CUT = """boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.getAttribute("aria-label"))"""


def check_page(running: Any, path: Path) -> int:
    """No complaint, every picture there and not empty, nothing wider than a phone; the number of
    pictures."""
    for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light")):
        with opened(running, path, width=width, scheme=scheme) as (page, complaints):
            check_first_screen(page, width)
            unfold(page)
            tall = page.evaluate("document.documentElement.scrollHeight")
            assert width < _DESK or tall <= _TALLEST  # each evaluator had all tables anew: 49,384
            pictures = page.evaluate(_PICTURES)
            for picture in pictures:
                assert min(picture["width"], picture["height"]) > 100, picture
                assert picture["marks"] > 20, picture
                assert len(picture["alt"]) > 40, picture
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            wide = page.locator(".scroll").evaluate_all(_CUT)
            assert width < _DESK or wide == []  # 13 of 16 tables were cut off
            assert complaints == []
    return len(pictures)


def picture(report: Path, out: Path) -> None:
    """The first screen of a report as a picture, for README: CONTRIBUTING.md, "The picture"."""
    from PIL import Image

    with chromium() as running, opened(running, report) as (page, _):
        png = page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 800})
    Image.open(io.BytesIO(png)).convert("RGB").save(out, quality=80, method=6)


if __name__ == "__main__":
    picture(*map(Path, sys.argv[1:]))
