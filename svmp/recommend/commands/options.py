"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from svmp.errors import ModelError
from svmp.locking import WAIT as WAIT

File = Annotated[Path, typer.Argument(metavar="RATINGS", help="A file of ratings.")]
Folder = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")]
Factors = Annotated[int, typer.Option(min=0, help="Number of factors of a user and of an item.")]
Events = Annotated[
    bool, typer.Option("--events", help="The rows are events (clicks, plays), not ratings.")
]
AtLeast = Annotated[
    float | None,
    typer.Option(help="With --events: least rating that is an event; by default any above 0."),
]
Counts = Annotated[
    bool, typer.Option("--counts", help="With --events: a rating is the number of events.")
]
Names = Annotated[
    str, typer.Option("--columns", help="user,item,rating[,time] by name or position from 0.")
]
Rule = Annotated[str, typer.Option(help="How to treat repeated pairs: error, last, mean or sum.")]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file, as latin-1.")]
Unpacked = Annotated[
    int | None,
    typer.Option(min=1, help="Limit of the unpacked size of a file, in bytes; by default 4e9."),
]
TextIds = Annotated[
    str,
    typer.Option(
        help="user, item or user,item: ids to read as text, even if they look like numbers."
    ),
]
Range = Annotated[
    str,
    typer.Option(
        metavar="LOW,HIGH",
        help="Not for events: least and greatest rating, as 1,5; by default those of the data.",
    ),
]
Covariance = Annotated[
    str | None,
    typer.Option(help="Not for events: q of the factors is full or diagonal; by default auto."),
]
Noise = Annotated[
    str | None,
    typer.Option(help="Not for events: noise of each user, or shared; by default user."),
]
MaxSweeps = Annotated[
    float | None,
    typer.Option(min=1, help="Not for events: maximum number of sweeps; by default 150."),
]
Calibrate = Annotated[
    float | None,
    typer.Option(min=0, help="Not for events: share to hold out at first; by default 0.05."),
]
Tol = Annotated[
    float | None,
    typer.Option(
        min=0, help="Not for events: fall of the held-out error to stop at; by default 0.0001."
    ),
]
Ratio = Annotated[
    float | None, typer.Option(help="With --events: negatives for each event; by default 3.")
]
Power = Annotated[
    float | None,
    typer.Option(help="With --events: power of popularity, to draw negatives by; by default 1."),
]
Score = Annotated[
    str | None,
    typer.Option(help="With --events: ranking score, z or probability; by default z + 1/2 log pi."),
]
Iterations = Annotated[
    int | None, typer.Option(min=1, help="With --events: graphs to draw; by default 8.")
]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Wait = Annotated[
    float,
    typer.Option(min=0, help="Seconds to wait for another process that writes the model."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Count = Annotated[int, typer.Option("-n", min=1, help="Number of results.")]


class FileOptions(NamedTuple):
    """Values of the options for reading a file."""

    encoding: str
    max_unpacked: int | None
    text_ids: str = ""


def columns_of(text: str) -> Any:
    """Parse the value of `--columns` into names or positions."""
    if not text:
        return None
    parts = [part.strip() for part in text.split(",")]
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def range_of(text: str) -> tuple[float, float] | None:
    """Parse the value of `--range`."""
    if not text:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ModelError(f"--range must be two numbers, as 1,5, not {text!r:.60}") from None
    return low, high
