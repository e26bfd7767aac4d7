#!/usr/bin/env python3
"""The driver with a plan in rows.json, as local/run_recipe.py with that of a corpus.

Tests link this into a folder as local/run_recipe.py, beside a run.sh (`make_toy`).
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __package__ in (None, ""):
    sys.path[0] = str(ROOT)
from utils.cli import run_program
from utils.driver import Driver
from utils.recipe import Planned, Tables, read_script

HEAD = f"""#!/usr/bin/env bash
set -euo pipefail
stage=0 stop_stage=9 nj=2 alpha=1
dry_run=false # [full]
. {ROOT}/path.sh
. {ROOT}/cmd.sh
. utils/parse_options.sh
. utils/recipe.sh
begin_recipe toy "$@"
"""


def stages(*each: str, first: int = 1) -> str:
    """Stages of a recipe's script, numbered from the first on, with what each makes."""
    return "".join(
        f'if in_stage {n} "stage"; then\n  each {one}\nfi\n' for n, one in enumerate(each, first)
    )


def make_toy(folder: Path, body: str, *rows: dict[str, Any]) -> Path:
    """A recipe whose stages are in `body`, and its plan; returns its script."""
    (folder / "local").mkdir(exist_ok=True)
    for link, target in (
        (folder / "utils", ROOT / "utils"),
        (folder / "local/run_recipe.py", Path(__file__)),
    ):
        if not link.is_symlink():
            link.symlink_to(target)
    (folder / "rows.json").write_text(json.dumps(rows))
    script = folder / "run.sh"
    script.write_text(HEAD + body + '\nend_recipe 9 "results: here" said\n')
    script.chmod(0o755)
    return script


def sum_up(*given: Any) -> Any:
    """Estimates as of a recipe; who estimates takes long to import."""
    from local.plan import forecast

    return forecast.sum_up(*given)


def main(argv: object = None) -> int:
    """Run the program."""
    recipe, *words = sys.argv[1:]
    end = words.index("--")
    options = dict(word.split("=", 1) for word in words[:end])

    def plan() -> Planned:
        tables = Tables()
        for row in json.loads(Path("rows.json").read_text()):
            tables.add(**row)
        return Planned(tables, {}, [])

    return Driver("run.sh", recipe, options, read_script(words[end + 1 :]), plan, sum_up).run()


if __name__ == "__main__":
    sys.argv.pop(0)
    run_program(main)
