"""Colours of pictures: eight systems are told apart by colour-blind readers, on light and dark.

Simulation of dichromats: Machado, Oliveira and Fernandes 2009, "A physiologically-based model for
simulation of color vision deficiency", severity 1. Distance: CIE 1976 (L*a*b*), D65.
Contrast: WCAG 2.
"""

import re

import numpy as np
import pytest

from local.report import draw
from local.report.measures import ROOT

SEEN_BY = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
}  # fmt: skip
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
THEMES = {
    "light": (draw.SERIES, draw.PAPER),
    "dark": ([draw.DARK[colour] for colour in draw.SERIES], draw.DARK[draw.PAPER]),
}


def linear(colours: list[str]) -> np.ndarray:
    """(n, 3) linear RGB."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    t = np.clip(rgb, 0, 1) @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eyes", SEEN_BY)
def test_eight_systems_are_told_apart(theme, eyes):
    """Blue and violet were 5.7 apart in deuteranopia, olive and green 2.6 in protanopia."""
    seen = lab(linear(list(THEMES[theme][0])) @ SEEN_BY[eyes].T)
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=2)
    assert apart[~np.eye(len(seen), dtype=bool)].min() >= 10


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_stands_out_from_the_page(theme):
    colours, paper = THEMES[theme]
    own, page = (linear(list(c)) @ XYZ[1] for c in (colours, [paper]))
    contrast = (np.maximum(own, page) + 0.05) / (np.minimum(own, page) + 0.05)
    assert contrast.min() >= 3


def test_lab_of_known_colours():
    """Red, after Lindbloom: 53.24, 80.09, 67.20."""
    assert lab(linear(["#ff0000"]))[0] == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


def test_matplotlib_s_greys_are_those_of_the_page():
    """Another grey would have no variable, and stay dark on a dark page."""
    text = (ROOT / "local/report/pictures.mplstyle").read_text()
    assert set(re.findall("#[0-9a-f]{6}", text)) == {draw.INK, draw.SOFT, draw.GRID}
