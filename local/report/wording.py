"""Names of attackers, groups and target voices in plain words, texts in Markdown, and templates."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from local.protocols import attackers
from local.report.frame import value_of
from local.report.measures import MEASURES, ROOT, number, percent, show

# Who is in a split, by its gender.
VOICES = {"f": "women", "m": "men", "mixed": "women and men together"}
PROTECTED = tuple(attackers.ATTACKERS)  # attackers of protected speech, the least informed first
ATTACKERS = {"unprotected": "unprotected"} | {
    name: made.words for name, made in attackers.ATTACKERS.items()
}
# Attackers whose absence is worth a word; without the aligned one, a reversible change looked best.
CORE = ("ignorant", "aligned", "lazy_informed", "semi_informed", "white_box")
USES = {"wer": "word error rate", "uar": "recall of emotions", "mos": "estimated opinion score"}
# DeID is one attacker's view: the cells of OP compare original with protected speech.
HEARD = "as heard by an attacker who compares with the original voices"
# A system that converts all speech to one target voice: its number, of how many, and its pitch.
TARGET = re.compile(r"((?:bn_)?const)_\d+((?:_of_\d+)?(?:_f0)?)")
_TARGETS = 3  # from so many on, they are shown together, by target
# Underscores within words mean nothing in Markdown; & begins an entity only before its name.
_MEANING = re.compile(r"[\\|`*<]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def code(text: str) -> Marked:
    """A name in the letters of code."""
    ticks = "``" if "`" in text else "`"
    return Marked(ticks + " ".join(text.splitlines()).replace("|", r"\|") + ticks)


def plain(text: str) -> str:
    """A name or sentence in Markdown, which shows it as it is, on one line.

    >>> plain("a|b_c<d>")
    'a\\\\|b_c\\\\<d>'
    """
    if isinstance(text, Marked):
        return text
    return _MEANING.sub(r"\\\g<0>", " ".join(text.splitlines()))


def target_series(systems: Iterable[str], fewest: int = _TARGETS) -> dict[str, list[str]]:
    """Systems that are targets of one experiment (001), sorted; smaller series are left out.

    >>> target_series(["b2", "const_01_f0", *(f"const_{i}_of_3" for i in (2, 3, 1))])
    {'const_NN_of_3': ['const_1_of_3', 'const_2_of_3', 'const_3_of_3']}
    """
    found: dict[str, list[str]] = {}
    for system in sorted(set(systems)):
        if match := TARGET.fullmatch(system):
            found.setdefault(f"{match[1]}_NN{match[2]}", []).append(system)
    return {name: own for name, own in found.items() if len(own) >= fewest}


def target_gender(system: str) -> str:
    """f or m: of the targets of a series, the first half (rounded up) are women.

    >>> [target_gender(f"const_{i}_of_3") for i in (1, 2, 3)]
    ['f', 'f', 'm']
    """
    number, _, of = system.partition("const_")[2].partition("_of_")
    return "f" if int(number) <= (int(of.partition("_")[0]) + 1) // 2 else "m"


def target_voices(systems: Iterable[str]) -> list[str]:
    """All of them."""
    return [system for own in target_series(systems).values() for system in own]


def group_of(row: Any) -> str:
    """Who is in the split of a row of figures, in words."""
    return VOICES.get(row.gender, row.split)


def attacker(name: str) -> str:
    """An attacker as it is called in sentences."""
    return ATTACKERS.get(name, name.replace("_", "-"))


def absent(known: Collection[str]) -> list[str]:
    """Attackers worth a word whose kind is not among those known."""
    return [core for core in CORE if not any(name.startswith(core) for name in known)]


def enumerate_words(names: Sequence[str], most: int = 3) -> str:
    """`a, b and c`, or `a, b, c and 3 more`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(ROOT), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=".html" in name,
    )  # fmt: skip
    environment.filters |= {
        "plain": plain, "number": number, "percent": percent, "enumerate": enumerate_words,
        "attacker": attacker, "eer": partial(show, measure=MEASURES["eer"]), "figure": value_of,
        "group": group_of,
    }  # fmt: skip
    return environment.get_template(name, globals={"HEARD": HEARD})


def render(template: str, **context: object) -> str:
    """A template, named from the root of the project on, filled in; texts in HTML are escaped."""
    return _template(template).render(**context)


def say(name: str, /, **told: object) -> str:
    """The text of this name in templates/sentences.jinja, on one line."""
    sentences = _template("local/report/templates/sentences.jinja").module
    return " ".join(str(getattr(sentences, name)(**told)).split())
