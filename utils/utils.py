"""Enters the environment where a program was typed as it stands: `python3 steps/protect_folder.py`.

Python then looks for modules in the program's folder first. Links there, one for each floor, lead
the first import of ours to this file, which finds the floor itself.
"""

import importlib
import os
import sys
from pathlib import Path

_program = Path(sys.argv[0]).resolve()
_root = _program.parents[1]
if not sys.prefix.startswith(f"{_root}/.venv") and os.access(_root / ".venv/bin/python3", os.X_OK):
    os.execv(_program, [str(_program), *sys.argv[1:]])  # by its first line
sys.path[0] = str(_root)
del sys.modules[__name__]
importlib.import_module(__name__)
