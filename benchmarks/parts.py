"""Rows in parts: seconds a sweep beside one table, and memory out of core, K = 32.

In memory: a million Netflix-shaped ratings in 8 parts of users and in one table, in turn; full VB
with joint solves of each user's and each item's factors, and without. A sweep is the least time
between the ends of two iterations. Out of core: 300 million generated ratings in Parquet files of a
million rows, each run in a process of its own; beside 300 times the sweep over the first million in
one table. Times are processor seconds, which other programs on the machine hardly affect; the notes
have wall seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from alone import in_new_process
from common import Row, main
from parts_alone import paper_model, timed
from parts_data import write_ratings

import svmp
from svmp.datasets import netflix_shaped
from svmp.network.dims.data_columns import Columns

FACTORS, PARTS, ITEMS = 32, 8, 10_000
METHODS = {"joint solves": svmp.Growing(1.0), "one factor after the other": svmp.FullVB()}
MOST_GB = 4.0
MEMORY = "1GB"
ALONE = str(Path(__file__).with_name("parts_alone.py"))


def in_memory(share: float, rounds: int) -> Iterator[Row]:
    """Yield the sweeps over 8 parts in memory beside those over one table."""
    ratings = netflix_shaped(share)
    columns = {"user": ratings.user, "item": ratings.item, "rating": ratings.rating}
    declare = paper_model(ratings.items, FACTORS)
    whole = declare(Columns(columns))
    for how, method in METHODS.items():
        least = {"parts": (9e9, 9e9), "table": (9e9, 9e9)}
        for _ in range(rounds):  # in turn: other load affects both
            for name in least:
                data = (
                    whole
                    if name == "table"
                    else svmp.Parts(declare, svmp.split(columns, by="user", parts=PARTS))
                )
                found = timed(data, method, 12)
                if isinstance(data, svmp.Parts):
                    data.close()
                least[name] = (min(least[name][0], found[0]), min(least[name][1], found[1]))
        what = f"full VB sweep, {PARTS} parts in memory, Netflix-shaped, {how}"
        yield beside(what, least["parts"], least["table"], "one table", 1.3)


def beside(
    what: str, mine: tuple[float, float], other: tuple[float, float], against: str, wanted: float
) -> Row:
    """Return the row of two sweeps, each with its wall seconds and its processor seconds."""
    note = f"wall seconds {mine[0]:.3g} and {other[0]:.3g}: {mine[0] / other[0]:.3g}"
    return Row(what, mine[1], other[1], against, "s", wanted, note)


def out_of_core(millions: int, folder: Path, sweeps: int) -> Iterator[Row]:
    """Yield the memory and the sweeps of a fit whose parts stay in files."""
    write_ratings(folder, millions * 10**6, millions * 5000, ITEMS)
    request = {"folder": str(folder), "items": ITEMS, "factors": FACTORS, "memory": MEMORY}
    in_table, in_files = (
        {**request, "in_memory": 1, "sweeps": 12},
        {**request, "in_memory": 0, "sweeps": sweeps},
    )
    before, found, after = (in_new_process(ALONE, some) for some in (in_table, in_files, in_table))
    yield from rows_of(millions, found, [before, after])


def rows_of(
    millions: int, found: dict[str, float], tables: Sequence[dict[str, float]]
) -> Iterator[Row]:
    """Yield the rows of a fit out of core, beside sweeps over a million in one table."""
    what = f"{millions} million ratings out of core"
    yield Row(f"peak memory, {what}", found["peak_GB"], MOST_GB, "the limit", "GB", 1.0)
    one, cpu = (millions * min(some[name] for some in tables) for name in ("seconds", "cpu"))
    against = f"{millions} times a million in one table"
    yield beside(f"sweep, {what}", (found["seconds"], found["cpu"]), (one, cpu), against, 2.0)


def measure(quick: bool) -> Iterator[Row]:
    yield from in_memory(0.05 if quick else 1.0, 1 if quick else 5)
    for millions in (2,) if quick else (20, 300):
        with tempfile.TemporaryDirectory() as folder:
            yield from out_of_core(millions, Path(folder), 3)


if __name__ == "__main__":
    main(measure, __doc__)
