#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute mean opinion scores over speakers, and their drop by protection, as JSON.

QUALITY is the table of steps/estimate_quality.py, of some or all utterances of DATA. OUT, a file or
- for standard output, gets mos (1 to 5) and, with --original, mos_original and mos_drop of the
utterances that have both scores; `n_undefined` counts those without, by reason.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import AGAIN, Bootstrap, Figures, write_figures
from utils.cli import UserError
from utils.commands import program
from utils.options import DataFolder, Seed


@program
def main(
    data: DataFolder,
    quality: Annotated[Path, "The table of estimate_quality.py"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA QUALITY"] = (),
    original: Annotated[
        Sequence[Path], "The scores of the original speech; may be given again, for the original "
        "of a further set", "QUALITY",
    ] = (),
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.utility import quality_figures, read_quality
    from utils.tables import read_map

    scores: dict[str, float | str] = {}
    utt2spk: dict[str, str] = {}
    for folder, path in [(data, quality), *also]:
        found, speakers = read_quality(path), read_map(folder / "utt2spk")
        if strange := found.keys() - speakers.keys():
            raise UserError(f"{path}: {min(strange)} is not in {folder}/utt2spk; estimate it again")
        if twice := found.keys() & scores.keys():
            raise UserError(f"{path}: {min(twice)} is in another set, too; name each set once")
        scores |= found
        utt2spk |= speakers
    before: dict[str, float | str] = {}
    for path in original:
        before |= read_quality(path)
    if original and (missing := [utt for utt in scores if utt not in before]):
        raise UserError(f"{original[0]}: has no {missing[0]}; estimate it again")
    figures = quality_figures(
        scores, utt2spk, before if original else None,
        n_bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    write_figures(out, figures)
