"""Command-line options for reading files of ratings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Names = Annotated[
    str, typer.Option("--columns", help="user,item,rating[,time] by name or position from 0.")
]
Rule = Annotated[str, typer.Option(help="If a pair is there twice: error, last, mean or sum.")]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file, as latin-1.")]
Unpacked = Annotated[
    int | None, typer.Option(min=1, help="Bytes that a packed file may unpack to; by default 4e9.")
]
TextIds = Annotated[
    str,
    typer.Option(
        help="user, item or user,item: ids to read as text, though they look like numbers."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Decides all that is drawn.")]


def columns_of(text: str) -> Any:
    """Parse the value of `--columns` into names or positions."""
    if not text:
        return None
    parts = [part.strip() for part in text.split(",")]
    return tuple(int(part) if part.isdecimal() else part for part in parts)
