"""The command line of a program, made with click of a function with annotated parameters.

Those before `*` are the arguments in their order, those behind it the options:

    @program
    def main(data: DataFolder, *, bins: Annotated[int, "The number of bins", "N"] = 0) -> None:

It stands at the end of its file, and runs where the file is what was started. The first line of
the file enters the environment of path.sh, so that it runs in any folder and in a fresh shell.

Behind the type stand what --help says and what stands for the value (left out: the name); then, in
any order, a function that makes the value of its text, or raises BadValue or ValueError (left out:
the type; a `bool` without one is a flag), a tuple of the only values (or the type is a Literal),
and COMMON. Sequence[T] is an option that may be given again, tuple[T, T] takes as many words, and
tuple[T, ...] all up to the next option. A NamedTuple stands for its fields, which are options.
"""

import os
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter, cleandoc, signature
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import click

from utils.cli import COMMON, BadValue, UserError, run_program, user_path


class _Value(click.ParamType[Any]):
    """A value that a function makes of its text."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = user_path if parse is Path else parse
        self.name = getattr(parse, "__name__", "text").lower()

    def __call__(self, value: Any, param: Any = None, ctx: Any = None) -> Any:
        """The value; a default is one already."""
        if not isinstance(value, str):
            return value
        if value.startswith("--") and isinstance(param, click.Option):  # click would take it
            raise click.BadParameter(f"a value is expected, not {value!r}", ctx, param)
        try:
            return self.parse(value)
        except BadValue as error:
            raise click.BadParameter(str(error), ctx, param) from error
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is not a valid {self.name}", ctx, param) from error


class _Option(click.Option):
    common = several = False  # several: it takes all words up to the next option


class _Command(click.Command):
    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Begins with a small letter, as the messages do."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces, prefix="usage: ")

    def format_help_text(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Keeps the line breaks, for there are tables in it."""
        formatter.write(f"\n{self.help}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Common options first."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        for title, common in (("Common options", True), ("Options", False)):
            chosen = [option for option in options if getattr(option, "common", False) == common]
            if records := [found for o in chosen if (found := o.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Group(_Command, click.Group):
    def list_commands(self, _: click.Context) -> list[str]:
        """In the order of the program, not of the alphabet."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Also the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _without_none(hint: Any) -> Any:
    parts = get_args(hint)
    return parts[parts[0] is NoneType] if NoneType in parts else hint


def _parameter(asked: Parameter) -> click.Parameter:
    """The argument or option that a function's parameter asks for."""
    about: tuple[Any, ...] = ()
    name, hint = asked.name, _without_none(asked.annotation)
    if get_origin(hint) is Annotated:
        hint, about = _without_none(hint.__origin__), hint.__metadata__
    words = [word for word in about if isinstance(word, str) and word != COMMON]
    text, metavar, *_ = *words, "", ""
    parse = next(filter(callable, about), None)
    flag, again, several = hint is bool and not parse, get_origin(hint) is Sequence, False
    more: dict[str, Any] = {"help": text or None, "required": asked.default is asked.empty}
    if not more["required"]:
        more["default"] = asked.default
    if again:
        (hint,) = get_args(hint)
    parts = get_args(hint)
    if get_origin(hint) is tuple and (parts[-1] is Ellipsis or not parse):
        several, hint = parts[-1] is Ellipsis, parts[0]
        more["nargs"] = 1 if several else len(parts)
    choices = next((item for item in about if isinstance(item, tuple)), ())
    choices = get_args(hint) if get_origin(hint) is Literal else choices
    more["type"] = click.Choice(choices) if choices else _Value(parse or hint)
    if asked.kind is not asked.KEYWORD_ONLY:
        if again or several:
            more["nargs"], metavar = -1, f"{metavar or name.upper()}..."
        return click.Argument([name], metavar=metavar or name.upper(), **more)
    if flag:
        more |= {"is_flag": True, "type": None}
    option = _Option(
        [f"--{name.replace('_', '-')}", name], metavar=metavar or None, multiple=again or several,
        show_default=asked.default != "", **more,
    )  # fmt: skip
    option.common, option.several = COMMON in about, several
    return option


def _command(function: Callable[..., int | None], text: str) -> click.Command:
    text, params, groups = cleandoc(text), list[click.Parameter](), dict[str, Any]()
    for name, asked in signature(function).parameters.items():
        own = [asked]
        if hasattr(asked.annotation, "_fields"):
            groups[name] = asked.annotation
            fields = signature(asked.annotation).parameters.values()
            own = [one.replace(kind=asked.KEYWORD_ONLY) for one in fields]
        params += map(_parameter, own)

    def call(**values: Any) -> int | None:
        made = {name: of(*map(values.pop, of._fields)) for name, of in groups.items()}
        return function(**values, **made)

    return _Command(
        function.__name__.strip("_"), callback=call, help=text,
        short_help=text.partition("\n")[0], params=params,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )  # fmt: skip


def _repeat(words: Sequence[str], command: click.Command) -> list[str]:
    """--sizes 1 2 as --sizes 1 --sizes 2, which click knows."""
    inside = command.commands.values() if isinstance(command, click.Group) else [command]
    options = [option for one in inside for option in one.params if isinstance(option, _Option)]
    several = {word for option in options if option.several for word in option.opts}
    repeated, option = [], ""
    for word, after in pairwise([*words, "-"]):
        if word.startswith("-"):
            option = word if word in several else ""
            repeated += [] if option and not after.startswith("-") else [word]
        else:
            repeated += [option, word] if option else [word]
    return repeated


def words_again(**changes: object) -> list[str]:
    """Words that call the program that runs once more, defaults included, with other values of some
    options; None: without it."""
    context = click.get_current_context()
    values = [
        (param, (context.params | changes)[str(param.name)]) for param in context.command.params
    ]
    given = [(option.opts[0], value) for option, value in values if isinstance(option, _Option)]
    words = [name if value is True else f"{name}={value}" for name, value in given
             if value not in (None, False)]  # fmt: skip
    arguments = [value for param, value in values if not isinstance(param, _Option)]
    return [*words, "--", *(str(value) for value in arguments if value is not None)]


class Program:
    """Program made from one function, or from several, which are its commands.

    text: what the program does, for --help; of a command its docstring says that.
    """

    def __init__(self, text: str | None, *functions: Callable[..., int | None]) -> None:
        self.text, self.functions = text or "", functions

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Run it on the words of a command line, or on those of this process; return the exit
        status.

        UserError where the words are not what is asked for.
        """
        words = sys.argv[1:] if argv is None else argv
        name = os.environ.get("PSEUDOVOX_COMMAND") or Path(sys.argv[0]).name
        command = self.command()
        try:
            with command.make_context(name, _repeat(words, command)) as context:
                return command.invoke(context) or 0
        except click.exceptions.Exit as done:  # of --help
            return done.exit_code
        except click.UsageError as error:
            message = " ".join(error.format_message().split())
            raise UserError(f"{message.rstrip('.')} (--help says more)") from error

    def command(self) -> click.Command:
        """The command line."""
        if len(self.functions) == 1:
            return _command(self.functions[0], self.text)
        commands = [_command(function, function.__doc__ or "") for function in self.functions]
        return _Group(
            commands=commands, help=cleandoc(self.text), no_args_is_help=False,
            context_settings=commands[0].context_settings,
        )  # fmt: skip


def program(function: Callable[..., int | None]) -> Program:
    """Make a program of a function, whose module's docstring says what it does; see `commands`."""
    return commands(function)


def commands(*functions: Callable[..., int | None]) -> Program:
    """Make a program of the functions of a module, which are its commands.

    Runs it where the module is what was started, as `if __name__ == "__main__"` does; so it stands
    at the end of its file.
    """
    made = Program(functions[0].__globals__["__doc__"], *functions)
    if functions[0].__module__ == "__main__":
        run_program(made)
    return made
