"""Anonymise speakers, and measure how well that worked.

  pseudovox protect IN [OUT]             protect a file, or all speech in a folder
  pseudovox evidence IN OUT              what attackers find in a protected folder
  pseudovox verify OUT.account.json      whether a folder is still that of its account
  pseudovox stream < IN > OUT            protect speech while it is spoken
  pseudovox recipe [CORPUS]              protect a corpus, attack it and report (CORPUS: synth)

`pseudovox COMMAND --help` has the options of each; paths of a recipe are those of its folder.
"""

import os
import sys

from pseudovox._programs import PROGRAMS, Error, find_version, start_of


def main() -> None:
    """Become the program of a command; end with 2 for an unknown one."""
    name, words = (sys.argv[1:] or ["--help"])[0], sys.argv[2:]
    if name in ("--help", "-h", "--version"):
        print(find_version() if name == "--version" else __doc__.strip())
        return
    try:
        if name not in PROGRAMS:
            raise Error(f"{name}: no such command; known: {', '.join(PROGRAMS)} (--help)")
        corpus = "synth" if name == "recipe" else ""
        if corpus and words and not words[0].startswith("-"):
            corpus = words.pop(0)
        command, environment, folder = start_of(name, words, corpus)
    except Error as error:
        print(f"pseudovox: {error}", file=sys.stderr)
        sys.exit(error.status)
    if folder:
        print(f"pseudovox: {folder}", file=sys.stderr, flush=True)
        os.chdir(folder)
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
