"""The n best items of every user, in blocks of users to bound memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from svmp.inference.running.notebook import in_notebook, is_shown
from svmp.inference.running.progress import line_of_progress
from svmp.inference.running.seeds import Seed, generator
from svmp.kernels.machine.compiling import CHUNK, claim, jit, shared
from svmp.kernels.machine.threads import share
from svmp.recommend.side import Floats, Keys, Side, score_all, variance_all

CELLS = 8_000_000
"""Approximate number of scores that are in memory at a time."""
BLOCK = 256
"""Maximum number of users that are scored together, and share a draw of the items."""
Explore = Literal["thompson", "ucb"] | None


def scorer(items: Side, explore: Explore, width: float, seed: Seed) -> Callable[..., Floats]:
    """Return a function of the number and the users of a block that scores them on all items."""
    if explore is None:
        return lambda block, users: score_all(users, items)
    if explore == "ucb":
        return lambda block, users: (
            score_all(users, items) + np.float32(width) * np.sqrt(variance_all(users, items))
        )

    def thompson(block: int, users: Side) -> Floats:
        rng = generator(seed, block)
        return score_all(users.draw(rng, width), items.draw(rng, width))

    return thompson


@jit
def best_of_row(line, n, seen, place, value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the places and values of the n best scores of one row, best first.

    The scores at the places in `seen` are left out. Ties are broken by place. If there are fewer
    than n scores, the remaining places are not written.
    """
    for e in range(len(seen)):
        line[seen[e]] = -np.inf
    count, least = 0, np.float32(-np.inf)
    for column in range(len(line)):
        x = line[column]
        if x <= least:
            continue
        spot = min(count, n - 1)
        while spot > 0 and value[spot - 1] < x:
            place[spot], value[spot] = place[spot - 1], value[spot - 1]
            spot -= 1
        place[spot], value[spot] = column, x
        count = min(count + 1, n)
        if count == n:
            least = value[n - 1]


@shared
def best_of_rows(taken, scores, n, begin, seen, places, values):  # type: ignore[no-untyped-def] # pragma: no cover
    """Call `best_of_row` for every row; row r leaves out `seen[begin[r]:begin[r + 1]]`."""
    row = claim(taken, 1)
    while row < len(scores):
        some = seen[begin[row] : begin[row + 1]]
        best_of_row(scores[row], n, some, places[row], values[row])
        row = claim(taken, 1)


def best(scores: Floats, n: int, begin: Keys, seen: Keys, places: Keys) -> None:
    """Write the places of the n best scores of each row; a single row runs on this thread."""
    values = np.full((len(scores), n), -np.inf, np.float32)
    if len(scores) == 1 and n:
        best_of_row(scores[0], n, seen, places[0], values[0])
    elif n:
        share(best_of_rows, scores, n, begin, seen, places, values)


def rank(scores: Floats, begin: Keys, seen: Keys, row: Keys, column: Keys, ranks: Keys) -> None:
    """Write the ranks of cells, from 1, among the scores of their row that are not in `seen`."""
    scores[np.repeat(np.arange(len(scores)), np.diff(begin)), seen] = -np.inf
    share(rank_cells, scores, row, column, ranks)


@shared
def rank_cells(taken, scores, row, column, ranks):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the ranks of cells, from 1, among the scores of their row."""
    first = claim(taken, CHUNK)
    while first < len(row):
        for cell in range(first, min(first + CHUNK, len(row))):
            line, place = scores[row[cell]], column[cell]
            x = line[place]
            better = 0
            for other in range(len(line)):
                better += line[other] > x or (line[other] == x and other < place)
            ranks[cell] = better + 1
        first = claim(taken, CHUNK)


def shown(
    blocks: Sequence[int], progress: bool | None, doing: str = "recommending", few: int = 20
) -> Iterable[int]:
    """Show progress: by default on a terminal or in a notebook, from more than `few` blocks on."""
    if not is_shown(progress) or (progress is None and len(blocks) <= few):
        return blocks
    if in_notebook():
        return in_cell(blocks, progress, doing)
    from rich.console import Console
    from rich.progress import track

    return track(blocks, doing, console=Console(stderr=True), transient=True)


def in_cell(blocks: Sequence[int], progress: bool | None, doing: str) -> Iterator[int]:
    """Yield blocks, with their number below the cell of a notebook."""
    with line_of_progress(progress) as show:
        for done, block in enumerate(blocks):
            show(f"{doing}: {done:,} of {len(blocks):,}")
            yield block
        show(f"{doing}: {len(blocks):,} of {len(blocks):,}")
