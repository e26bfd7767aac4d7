"""pseudovox from Python: what `make protect` and `make evidence` do, for a folder of recordings.

    from pseudovox import evidence, protect

    protect("recordings", "protected", key_file="key.txt")
    evidence("recordings", "protected")

`pip install -e .` in a checkout makes it known: it needs the models beside it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # the floors: local, steps, utils
import utils  # noqa: F401 - no library reports what is run, from here on


def protect(source: str | Path, out: str | Path, **options: object) -> None:
    """Protect a folder of recordings; options: those of steps/protect_folder.py, such as
    `key_file="key.txt"`, `per="speaker"` or `rename=True`.

    Raises UserError (utils.cli), also where some files failed; the others are done.
    """
    from steps.protect_folder import main

    main([str(source), str(out), *_words(options)])


def evidence(source: str | Path, out: str | Path, **options: object) -> dict[str, object]:
    """Measure what the protection of a folder hid: the content of OUT.evidence.json. Options and
    errors as of `protect`, those of local/measure_evidence.py."""
    from local.measure_evidence import main
    from steps.standalone.account import beside
    from utils.cli import user_path
    from utils.tables import read_json_object

    main([str(source), str(out), *_words(options)])
    return read_json_object(beside(user_path(str(out)), "evidence.json"), "measure it again")


def _words(options: dict[str, object]) -> list[str]:
    """Options as a command line has them; True is a flag, None or False none."""
    words = []
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words
