"""How constant targets are compared."""

import csv
import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.recipes import TEMPLATE
from utils.tables import write_map


def test_equally_many_women_and_men_were_drawn_alike(tmp_path: Path) -> None:
    """With the same scores in both lists their differences cancelled in every resample. One person
    whom nothing ever linked was unprotected, and a target that lacked made men's women's."""
    rng, people = np.random.default_rng(0), range(12)
    pairs, out = [*product(people, people)], tmp_path / "exp"
    for name in ("original", *(f"const_0{n}_of_4" for n in (1, 2, 3, 4))):
        own = [rng.normal(1.5 * (e == t)) for e, t in pairs]
        how = "unprotected.e/OO" if name == "original" else "white_box_backend.e/AA"
        for g in "fm":
            data, made = tmp_path / f"data/t_trials_{g}", f"{name}/{how}/t_{g}"
            for folder in (data, out / "scores" / made, out / "metrics" / made):
                folder.mkdir(parents=True, exist_ok=True)
            rows = [f"{g}{e} {g}{t}-1" for e, t in pairs]
            kinds = ["target" if e == t else "nontarget" for e, t in pairs]
            write_map(data / "utt2spk", {f"{g}{t}-1": f"{g}{t}" for t in people})
            for path, values in ((data / "trials", kinds), (out / "scores" / made / "scores", own)):
                write_map(path, dict(zip(rows, values, strict=True)), blanks=True)
            linked = {f"{g}{t}": float(t > 0) for t in people}
            found = json.dumps({"linkability_per_speaker": linked})
            (out / "metrics" / made / "metrics.json").write_text(found)
    program = TEMPLATE.parents[1] / "benchmarks/compare_targets.py"
    command = [sys.executable, program, tmp_path, "t", "const", tmp_path / "out.csv"]
    assert subprocess.run(command, check=True)
    shown = {row["figure"]: row for row in csv.DictReader((tmp_path / "out.csv").open())}
    value, low, high = map(float, re.findall(r"-?[.\d]+", shown["gender"]["both"]))
    assert low < -5 < value < 5 < high
    deviation, _, most = map(float, re.findall(r"[.\d]+", shown["deviation"]["both"]))
    assert most / deviation == pytest.approx((3 / 0.2158) ** 0.5, rel=0.02)  # of four targets
    assert shown["unprotected"]["women"] == "92"
    (out / "scores/const_04_of_4/white_box_backend.e/AA/t_m/scores").unlink()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == f"{out}: 3 attacks on 4 targets, by m\n"
