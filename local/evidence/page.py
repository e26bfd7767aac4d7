"""Evidence as data and as one page, with clips of those who are named most often."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import soundfile
from scipy.stats import binomtest

from local.evidence import figures, hearing
from local.evidence.figures import Attack, Found
from local.evidence.hearing import Pair
from local.report import select
from local.report.frame import measure, percent
from local.report.gather import SECONDS, loudest
from local.report.page import colour
from local.report.words import attacker, render
from steps.audio import SAMPLE_RATE
from utils.arrays import Float64

N_CLIPS = 3


class Clip(NamedTuple):
    """A recording's name, and the same seconds of it before and after protection, MP3 in base64."""

    name: str
    before: str
    after: str


def as_data(
    found: Found, about: Mapping[str, object], pairs: Sequence[Pair], left_out: Mapping[str, str]
) -> dict[str, object]:
    """All of it."""
    return {
        **about,
        "recordings": {pair.name: pair.person for pair in pairs},
        "left_out": left_out,
        "verdict": str(found.verdict),
        "attacks": [
            {"attacker": a.attacker, "encoder": a.encoder, **a.figures} for a in found.attacks
        ],
        "not_run": found.left_out,
        "words": found.words,
        "quality": found.quality,
        "pitch": found.pitch,
    }


def as_page(
    found: Found, about: Mapping[str, Any], pairs: Sequence[Pair], left_out: Mapping[str, str]
) -> str:
    """One HTML file that asks the network for nothing."""
    return render(
        "local/evidence/evidence.html.jinja", {"hits": hits, "said": said},
        found=found, about=about, left_out=left_out, n=len(pairs), select=select,
        people=len({pair.person for pair in pairs}), clips=clips(found, pairs), colour=colour,
        attacker=attacker, figures=figures, hearing=hearing,
    )  # fmt: skip


def hits(attack: Attack) -> str:
    """Recordings that are named, with an exact binomial interval: `3 of 40 (7.5 % [1.6, 20.4])`."""
    right, n = attack.hits
    ends = binomtest(right, n).proportion_ci()
    low, high = (100 * end for end in (ends.low, ends.high))
    return f"{right} of {n}: {percent(right / n)} [{low:.1f}, {high:.1f}]"


def said(report: Mapping[str, Any], name: str, of: str = "eer") -> str:
    """A figure of a report with its interval, written as the measure `of` is: in percent."""
    return measure(of).say(figures.value(report, name))


def clips(found: Found, pairs: Sequence[Pair]) -> list[Clip]:
    """Clips of a recording each of the people who are named most often by all attackers."""
    named: dict[str, float] = {}
    for attack in (a for a in found.attacks if a.attacker != "unprotected"):
        for person, rate in attack.figures["naming"]["reid_top_1_per_speaker"].items():
            named[person] = named.get(person, 0.0) + rate
    first = {f"person {pair.person}": pair for pair in reversed(pairs)}
    most = sorted(named, key=lambda person: (-named[person], person))[:N_CLIPS]
    return [_clip(first[person]) for person in most]


def _clip(pair: Pair) -> Clip:
    n, length = len(pair.original), round(SECONDS * SAMPLE_RATE)
    heard = pair.original.read(0, min(n, round(hearing.MOST * SAMPLE_RATE)))
    start = loudest(heard, length)
    sides = (pair.original, pair.protected)
    cut = (own.read(start, min(start + length, len(own))) for own in sides)
    return Clip(pair.name, *map(_mp3, cut))


def _mp3(samples: Float64) -> str:
    content = io.BytesIO()
    soundfile.write(content, samples, SAMPLE_RATE, format="MP3")
    return base64.b64encode(content.getvalue()).decode("ascii")
