"""The command line, `svmp`.

Commands are imported when they are called, so that `svmp --help` is fast and each command needs
only its own extra.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from svmp import interrupts
from svmp.errors import ExtraError, SvmpError, naming


def _recommend() -> typer.Typer:
    from svmp.recommend.commands import recommend

    return recommend


def _study() -> typer.Typer:
    from svmp.study.commands import study

    return study


def _lab() -> typer.Typer:
    from svmp.lab.command import lab

    return _one(lab)


def _warm() -> typer.Typer:
    from svmp.warm.command import warm

    return _one(warm)


def _one(function: Callable[..., None]) -> typer.Typer:
    """Return the command that a function is."""
    only = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    only.command()(function)
    return only


class Command(NamedTuple):
    """A command: what imports it, the line that `svmp --help` shows of it, and its extra."""

    get: Callable[[], typer.Typer]
    line: str
    extra: str


COMMANDS = {
    "lab": Command(
        _lab, "Open a local page to pick an algorithm, run it, and watch the bound.", "study"
    ),
    "warm": Command(
        _warm, "Compile all loops ahead, so that no fit has to wait for them.", "study"
    ),
    "recommend": Command(
        _recommend, "Recommendations from a file of ratings, with honest uncertainty.", "recommend"
    ),
    "study": Command(
        _study, "The paper's figures and claims, and the answer to its question.", "study"
    ),
}


class Commands(TyperGroup):
    """All commands. An interrupted one prints one sentence; the code is 130, or 143 by SIGTERM.

    One that lacks a package says which extra to install.
    """

    called: Command | None = None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called."""
        if args and args[0] in COMMANDS:
            self.called = COMMANDS[args[0]]
            self.commands[args[0]] = get_command(self.called.get())
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with self._sentence():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with self._sentence():
            return super().invoke(ctx)

    @contextmanager
    def _sentence(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt as interrupt:
            interrupts.say(interrupt)
            raise typer.Exit(interrupts.exit_code()) from None
        except ModuleNotFoundError as error:
            if self.called is None or isinstance(error, SvmpError) or not error.name:
                raise
            raise ExtraError(error, self.called.extra) from None


app = typer.Typer(
    cls=Commands,
    help="Stochastic variational message passing in conjugate Bayesian networks.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for _name, _command in COMMANDS.items():
    app.command(name=_name, help=_command.line)(lambda: None)  # replaced when it is called


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"svmp {version('svmp')}")
        raise typer.Exit


@app.callback()
def svmp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Stochastic variational message passing in conjugate Bayesian networks."""


def main() -> None:
    """Run the command line; invalid input ends with one sentence and exit code 2."""
    with interrupts.interruptible():
        try:
            with naming(flags=True):
                app()
        except KeyboardInterrupt:  # before the command is known
            interrupts.say()
            sys.exit(interrupts.exit_code())
        except SvmpError as error:
            print(f"svmp: {getattr(error, 'fact', error)}", file=sys.stderr)
            sys.exit(2)
