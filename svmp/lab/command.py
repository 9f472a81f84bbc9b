"""The command `svmp lab`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from svmp.errors import SvmpError, naming, needing
from svmp.recommend.commands.options import Encoding, Names, Rule, Unpacked, columns_of


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
