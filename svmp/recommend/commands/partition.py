"""The command `svmp recommend partition`: a data set in parts from a file of ratings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from svmp.interrupts import if_interrupted
from svmp.recommend.commands.options import (
    Encoding,
    Events,
    File,
    Json,
    Names,
    Rule,
    TextIds,
    Unpacked,
    columns_of,
)
from svmp.recommend.commands.output import formatted, print_rows


def partition(
    ratings: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    by: Annotated[str, typer.Option(help="Divide by user or by item.")] = "user",
    parts: Annotated[
        int | None, typer.Option(min=1, help="Number of parts; by default by --rows-per-part.")
    ] = None,
    rows_per_part: Annotated[
        int, typer.Option(min=1, help="Number of ratings of a part, about.")
    ] = 1_000_000,
    memory: Annotated[str, typer.Option(help="Memory to use, as 1GB or 500MB.")] = "1GB",
    events: Events = False,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    text_ids: TextIds = "",
    as_json: Json = False,
) -> None:
    """Write a file of ratings as Parquet parts, each with all ratings of its users."""
    from svmp.ratings import partition as write_parts

    options: dict[str, Any] = {"events": events, "encoding": encoding}
    options["columns"] = columns_of(columns)
    options["text_ids"] = [part for part in text_ids.split(",") if part]
    options |= {"duplicates": duplicates} if duplicates else {}
    options |= {"max_unpacked": max_unpacked} if max_unpacked else {}
    with if_interrupted(f"{out} is not written"), _progress() as report:
        found = write_parts(
            ratings,
            out,
            by=by,
            parts=parts,
            rows_per_part=rows_per_part,
            memory=memory,
            report=report,
            **options,
        )
    rows = [found.rows(part) for part in range(len(found))]
    about = {"folder": str(out), "parts": len(rows), "ratings": sum(rows)}
    about |= {"ratings of the largest part": max(rows)}
    if as_json:
        print(json.dumps(about))
    else:
        print_rows([{"": name, "value": formatted(value)} for name, value in about.items()], False)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line of text on a terminal, or does nothing."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.status import Status

    with Status("reading", console=Console(stderr=True)) as status:
        yield status.update
