#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the settings of a system with some of them changed, and check them.

CONF is a YAML file such as conf/systems/const_01.yaml, OUT the new one, NAME=VALUE a setting in
YAML's words; a dot leads into a mapping: generator.target=7.

With --profile P and --profiles N, OUT is pseudo-profile P of N: systems that know profiles (kNN-VC)
get these settings; of all others a profile is an independent draw. What is printed is the option
that steps/anonymise.py needs: --draw D.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import Settings
from utils.cli import UserError, run_program
from utils.commands import program


@program
def main(
    conf: Settings,
    out: Annotated[Path, "The settings that are written", "OUT"],
    changes: Annotated[Sequence[str], "The settings that change", "NAME=VALUE"] = (),
    *,
    profile: Annotated[int | None, "The number of the pseudo-profile, from 1", "P"] = None,
    profiles: Annotated[int | None, "The number of pseudo-profiles", "N"] = None,
) -> None:  # fmt: skip
    from steps.anonymisers.variation import vary_system

    if (profile is None) != (profiles is None):
        raise UserError("--profile and --profiles go together")
    asked = None if profile is None or profiles is None else (profile, profiles)
    draw = vary_system(conf, out, changes, asked)
    print(f"--draw {draw}")


if __name__ == "__main__":
    run_program(main)
