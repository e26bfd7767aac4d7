# SPDX-License-Identifier: Apache-2.0
"""Translation of launcher options to those of sbatch: conf/slurm.conf (Kaldi's language).

    command sbatch --export=ALL       the command that submits; needed
    option mem=* --mem $0             --mem 4G becomes: --mem 4G
    option gpu=0                      --gpu 0 becomes nothing: an exact value wins over `*`
    default gpu=0                     as if --gpu 0 were given
    # a comment

`--foo-bar` on the command line is the option foo_bar here.
"""

import re
import shlex
from dataclasses import dataclass, field

from utils.cli import UserError
from utils.tables import StrPath, read_lines

OWN = ("config", "max_jobs_run")  # the launcher's own; no line is needed for them


@dataclass
class SlurmConfig:
    """Parsed configuration: `options` maps (name, value or `*`) to sbatch's words."""

    path: str
    command: list[str] = field(default_factory=list)
    options: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)

    def submit_words(self, given: dict[str, str]) -> list[str]:
        """Command that submits, with translations of the given options (`num-threads`: 2)."""
        options = {name.replace("-", "_"): value for name, value in given.items()}
        words = list(self.command)
        for name, value in {**self.defaults, **options}.items():
            if name in OWN:
                continue
            rule = self.options.get((name, value), self.options.get((name, "*")))
            if rule is None:
                raise UserError(self._refusal(name, value))
            words += [word.replace("$0", value) for word in rule]
        return words

    def _refusal(self, name: str, value: str) -> str:
        option = name.replace("_", "-")
        if any(known == name for known, _ in self.options):
            values = " ".join(sorted(v for known, v in self.options if known == name))
            return f"--{option} {value}: {self.path} knows only the values {values}"
        known = sorted({"max_jobs_run", "config", *(known for known, _ in self.options)})
        names = ", --".join(name.replace("_", "-") for name in known)
        return f"--{option}: no such option in {self.path}; known: --{names}"


def read_slurm_config(path: StrPath) -> SlurmConfig:
    """Read a configuration; UserError names file and line of a fault."""
    config = SlurmConfig(str(path))
    for number, line in read_lines(path):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        keyword, _, rest = text.partition(" ")
        rule = re.fullmatch(r"(\w+)=(\S+)\s*(.*)", rest.strip())
        try:
            if keyword == "command" and rest.strip():
                config.command = shlex.split(rest)
            elif keyword == "option" and rule:
                config.options[rule[1], rule[2]] = shlex.split(rule[3])
            elif keyword == "default" and rule and not rule[3]:
                config.defaults[rule[1]] = rule[2]
            else:
                raise ValueError("expected: command ..., option name=value ..., default name=value")
        except ValueError as error:
            raise UserError(f"{path}:{number}: {text!r}: {error}") from error
    if not config.command:
        raise UserError(f"{path}: has no line 'command sbatch ...'")
    return config
