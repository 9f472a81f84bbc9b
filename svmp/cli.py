"""The command line, `svmp`.

Commands import their modules when they are called, so that `svmp --help` is fast and each command
needs only its own extra.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from svmp import interrupts
from svmp.errors import SvmpError, naming, needing
from svmp.recommend.commands import recommend
from svmp.recommend.commands.options import Encoding, Names, Rule, Unpacked, columns_of
from svmp.study.commands import study


class Commands(TyperGroup):
    """All commands. After Ctrl-C a command prints one sentence and exits with code 130."""

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
            raise typer.Exit(interrupts.STOPPED) from None


app = typer.Typer(
    cls=Commands,
    help="Stochastic variational message passing in conjugate Bayesian networks.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(recommend, name="recommend")
app.add_typer(study, name="study")


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


@app.command()
def lab(
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of ratings to offer as well.")
    ] = None,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "",
    max_unpacked: Unpacked = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; by default 8014, or any if that is taken."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open a local page to pick an algorithm, run it, and watch the bound."""
    module = needing("study", "svmp.lab.serve")
    given = {
        "columns": columns_of(columns),
        "duplicates": duplicates,
        "encoding": encoding,
        "max_unpacked": max_unpacked,
    }
    options = {name: value for name, value in given.items() if value}
    file = None if data is None else module.RatingsFile.of(data, **options)
    try:
        with naming(flags=False):
            module.serve(file, port, opens=browser)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise SvmpError(f"the lab cannot use port {port}: {reason}") from None


def main() -> None:
    """Run the command line; invalid input ends with one sentence and exit code 2."""
    interrupts.begin()
    try:
        with naming(flags=True):
            app()
    except KeyboardInterrupt:  # before the command is known
        interrupts.say()
        sys.exit(interrupts.STOPPED)
    except SvmpError as error:
        print(f"svmp: {getattr(error, 'fact', error)}", file=sys.stderr)
        sys.exit(2)
