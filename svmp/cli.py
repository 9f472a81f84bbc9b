"""The command line, `svmp`: one command for each thing that svmp does from files to files.

The commands import what they need when they are called, so that `svmp --help` is quick and each
works with its own extra installed.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    help="Stochastic variational message passing in conjugate Bayesian networks.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


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


@app.command()
def lab(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; by default 8014, or any if that is taken."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Pick an algorithm on a page of this machine, run it, and watch the bound."""
    serve = needing("study", "svmp.lab.serve").serve
    try:
        serve(port, opens=browser)
    except OSError as error:
        fail(f"the lab cannot use port {port}: {os.strerror(error.errno or 0)}")


def needing(extra: str, module: str) -> Any:
    """Import a module of svmp; where its extra is not installed, say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        fail(f"this needs {error.name}: pip install 'svmp[{extra}]'")


def fail(sentence: str) -> NoReturn:
    """End the command, for a reason that is said in one sentence."""
    typer.echo(f"svmp: {sentence}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    app()
