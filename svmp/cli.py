"""The command line, `svmp`: one command for each thing that svmp does from files to files.

The commands import what they need when they are called, so that `svmp --help` is quick and each
works with its own extra installed.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from svmp.errors import SvmpError
from svmp.study.commands import study

app = typer.Typer(
    help="Stochastic variational message passing in conjugate Bayesian networks.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(study, name="study")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"svmp {version('svmp')}")
        raise typer.Exit


@app.callback()
def svmp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    """Stochastic variational message passing in conjugate Bayesian networks."""


def main() -> None:
    """Run the command line; bad input ends in one sentence and exit code 2."""
    try:
        app()
    except SvmpError as error:
        print(f"svmp: {error}", file=sys.stderr)
        sys.exit(2)
