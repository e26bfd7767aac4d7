"""Settings in YAML files, checked by dataclasses that say what each setting may be."""

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import yaml

from utils.cli import UserError, refusing
from utils.registry import choose, did_you_mean
from utils.tables import StrPath, atomic_write, read_bytes

# ---- Bounds of a setting, beside its type: `Annotated[float, Number(above=0, unit="s")]`.

LARGEST = 65536  # of a layer: channels, frames of a kernel


@dataclass(frozen=True)
class Rule:
    """Condition for a value, and the message for a value that does not meet it."""

    allows: Callable[[Any], bool]
    refusal: Callable[[Any], str]


def Condition(allows: Callable[[Any], bool], meaning: str) -> Rule:
    """Condition for a value, and its meaning in words."""
    return Rule(allows, lambda _: f"; {meaning} is expected")


def Number(
    least: float = -math.inf, most: float = math.inf, above: float = -math.inf,
    below: float = math.inf, multiple: int = 1, odd: bool = False, unit: str = "",
) -> Rule:  # fmt: skip
    """Bounds of a number: at least, above, at most, below. multiple, odd: what a whole number must
    be."""
    bounds = {"at least": least, "above": above, "at most": most, "below": below}
    ends = [f"{word} {bound:g}" for word, bound in bounds.items() if math.isfinite(bound)]
    if math.isfinite(least) and math.isfinite(most):
        ends = [f"{least:g} to {most:g}"]
    kinds = {"an odd number": odd, f"a multiple of {multiple}": multiple > 1}
    words = [*(kind for kind, holds in kinds.items() if holds), " and ".join(ends)]
    return Condition(
        lambda value: least <= value <= most and above < value < below
        and not (odd and value % 2 == 0) and (multiple == 1 or value % multiple == 0),
        f"{', '.join(filter(None, words))} {unit}".rstrip(),
    )  # fmt: skip


def OneOf(*known: str, of: Collection[str] = ()) -> Rule:
    """Allowed words; of: also those of a registry, as it then is."""

    def refusal(value: Any) -> str:
        words = (*known, *of)
        return f" is unknown; known: {', '.join(words)}{did_you_mean(value, words)}"

    return Rule(lambda value: value in known or value in of, refusal)


def Long(least: int = 1, exactly: int | None = None) -> Rule:
    """Length of a list: `least` at least, or `exactly` so many."""
    wanted = f"a list of {exactly or f'{least} or more'} values"
    return Condition(lambda value: len(value) == (exactly or max(least, len(value))), wanted)


def Ascending() -> Rule:
    """Order of a list: no value is below the one before."""
    return Condition(lambda value: list(value) == sorted(value), "the lower end first")


def Matching(form: str, meaning: str) -> Rule:
    """Words of a form: a regular expression, and its meaning."""
    return Condition(lambda value: re.fullmatch(form, value) is not None, meaning)


Count = Annotated[int, Number(least=1)]
Natural = Annotated[int, Number(least=0)]
Size = Annotated[int, Number(least=1, most=LARGEST)]
SizeOrNone = Annotated[int, Number(least=0, most=LARGEST)]
Sizes = Annotated[tuple[Size, ...], Long()]
OddSize = Annotated[int, Number(least=1, most=LARGEST, odd=True)]
Share = Annotated[float, Number(least=0, most=1)]
Part = Annotated[float, Number(above=0, most=1)]
Positive = Annotated[float, Number(above=0)]
NotNegative = Annotated[float, Number(least=0)]


# ---- Settings in YAML files, read strictly: a typo, a name given twice, a wrong kind is an error.
#
# A file is a mapping of names to plain values; a dataclass gives the names, kinds and defaults.
#
# Settings that differ little from a file's stand in the variants.yaml beside it, as if each were a
# file: `name: {base, question, ...}`, where base is the file's name, question is their purpose, and
# a setting replaces the base's as a whole.

T = TypeVar("T")
VARIANTS = "variants.yaml"
_DATE = "tag:yaml.org,2002:timestamp"
_PLAIN_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0b[0-1_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN))$"
    ),
}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Loader that refuses a name given twice in a mapping; YAML loaders silently keep the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [str(key.value) for key, _ in node.value]
        for number, (key, _) in enumerate(node.value):
            if str(key.value) in names[:number]:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} is given twice", problem_mark=key.start_mark
                )
        return typing.cast(dict[Any, Any], super().construct_mapping(node, deep))


# YAML 1.1 reads 1:30 as 90, 010 as 8 and 2024-02-30 as a date; here these are words.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, _PLAIN_NUMBERS.get(tag, pattern)) for tag, pattern in found if tag != _DATE]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_settings(path: StrPath) -> dict[str, object]:
    """Return the mapping in a YAML file, or the variant of that name. UserError, with the line, for
    anything else."""
    return _parse(settings_text(path), path)


def settings_text(path: StrPath) -> bytes:
    """Return the content of a settings file, or the equivalent content of a variant. UserError for
    a variant of an unknown base."""
    variant = _find_variant(Path(path))
    if variant is None:
        return read_bytes(path)
    listed, where = Path(path).parent, name_settings(path)
    bases = {p.stem: p for p in listed.glob("*.yaml") if p.name != VARIANTS}
    if not isinstance(variant, dict):
        raise UserError(f"{where}: settings are expected, one `name: value` a line")
    base = choose(bases, variant.get("base"), where, "base")
    if not isinstance(variant.get("question"), str):
        raise UserError(f"{where}: question: say in words what this variant is for")
    changed = {k: v for k, v in variant.items() if k not in ("base", "question")}
    text: str = yaml.safe_dump(read_settings(base) | changed, sort_keys=False)
    return text.encode()


def is_settings(path: StrPath) -> bool:
    """Whether there are settings of that name: a file, or a variant."""
    path = Path(path)
    return path.name != VARIANTS and (path.is_file() or _find_variant(path) is not None)


def name_settings(path: StrPath) -> StrPath:
    """Return the place of settings, for messages: the file, or the variants and the name."""
    path = Path(path)
    variant = _find_variant(path)
    return path if variant is None else f"{path.with_name(VARIANTS)}: {path.stem}"


def list_settings(folder: StrPath) -> list[str]:
    """Return the names of all settings in a folder."""
    names = {path.stem for path in Path(folder).glob("*.yaml") if path.name != VARIANTS}
    return sorted(names.union(_variants(Path(folder, VARIANTS))))


def _find_variant(path: Path) -> object | None:
    """Entry in the list of variants for a file that does not exist; None without one."""
    if path.suffix != ".yaml" or path.exists():
        return None
    variants = _variants(path.with_name(VARIANTS))
    return variants[path.stem] or {} if path.stem in variants else None


def _variants(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    found = path.stat()
    return _read_variants(path, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache
def _read_variants(path: Path, *_state: int) -> dict[str, object]:
    return _parse(read_bytes(path), path)


def _parse(text: bytes, path: StrPath) -> dict[str, object]:
    try:
        data = yaml.load(text.decode("utf-8"), _StrictLoader)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file (not UTF-8)") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: {error.problem}") from error
    except RecursionError as error:
        raise UserError(f"{path}: brackets or indents are nested too deeply") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise UserError(f"{path}: settings are expected, one `name: value` a line")
    return data


def parse_settings(kind: type[T], values: object, path: StrPath, where: str = "") -> T:
    """Make a dataclass of bool, int, float, str, tuples of them, `| None`, and such dataclasses.

    A type may carry bounds (`Annotated`, utils/settings.py); conditions on several settings are
    checked by the dataclass's __post_init__, which raises ValueError. `where` is the name of the
    mapping in the file, for messages. UserError names the file, the setting, and the known or
    expected values.
    """
    if not isinstance(values, dict):
        raise UserError(f"{path}: {where}: settings are expected, one `name: value` a line")
    prefix = f"{where}." if where else ""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            known = ", ".join(fields) + did_you_mean(name, fields)
            raise UserError(f"{path}: {prefix}{name}: unknown setting; known: {known}")
    for name, field in fields.items():
        no_default = dataclasses.MISSING is field.default is field.default_factory
        if no_default and name not in values:
            raise UserError(f"{path}: {prefix}{name}: is missing")
    found = {name: _convert(hints[name], values[name], path, f"{prefix}{name}") for name in values}
    with refusing(f"{path}: {prefix}{{}}", ValueError):
        return kind(**found)


class Declared(Generic[T]):
    """Class that is made from settings. kind: their dataclass; where: their mapping in the file."""

    kind: type[T]
    where = ""

    @classmethod
    def parse(cls, values: object, path: StrPath) -> T:
        """Check the content of the file `path` and make settings of it; UserError names it."""
        return parse_settings(cls.kind, values, path, cls.where)


def _convert(hint: Any, value: object, path: StrPath, where: str) -> object:
    # X | None: a given value is an X.
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
    if typing.get_origin(hint) is typing.Annotated:
        inner, *rules = typing.get_args(hint)
        found = _convert(inner, value, path, where)
        for rule in rules:
            if not rule.allows(found):
                raise UserError(f"{path}: {where}: {value!r}{rule.refusal(value)}")
        return found
    if dataclasses.is_dataclass(hint):
        return parse_settings(typing.cast(type[object], hint), value, path, where)
    if typing.get_origin(hint) is tuple:
        return _convert_list(typing.get_args(hint), value, path, where)
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        point = hint is float and re.fullmatch(r"[-+]?\d+e[-+]?\d+", str(value), re.IGNORECASE)
        form = ", in YAML with a point (1.0e-3)," if point else ""
        raise UserError(f"{path}: {where}: {value!r}; {KINDS[hint]}{form} is expected")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path}: {where}: {value!r}; a finite number is expected")
    with refusing(f"{path}: {where}: a number beyond all bounds", OverflowError):
        return hint(value)


def _convert_list(
    kinds: tuple[Any, ...], value: object, path: StrPath, where: str
) -> tuple[object, ...]:
    """Make a tuple of the kinds, or of any length if they end in `...`."""
    any_length = kinds[-1] is ...
    if not isinstance(value, list) or not (any_length or len(value) == len(kinds)):
        wanted = "a list" if any_length else f"[a, b] with {len(kinds)} values"
        raise UserError(f"{path}: {where}: {value!r}; {wanted} is expected")
    if any_length:
        kinds = kinds[:1] * len(value)
    return tuple(_convert(kind, item, path, where) for kind, item in zip(kinds, value, strict=True))


def to_plain(settings: object) -> dict[str, Any]:
    """Convert a dataclass of settings to dicts, lists and numbers."""
    found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))  # type: ignore[call-overload]
    return found


def write_settings(path: StrPath, settings: dict[str, Any], **more: object) -> None:
    """Write settings, and further information, as YAML."""
    with atomic_write(path) as stream:
        yaml.safe_dump(settings | more, stream, sort_keys=False)
