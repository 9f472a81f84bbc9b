"""What commands print: tables for people, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmp.recommend.factor_model import Top


def ranked(
    top: tuple[Any, Any, Any], raw: Any = None, what: str = "item", score: str = "score"
) -> Iterator[dict[str, Any]]:
    """Yield a row for each item of a ranking, without those that only fill it up."""
    items, scores, stds = top
    more = scores if raw is None else raw
    for item, value, std, unclipped in zip(items, scores, stds, more, strict=True):
        if value == value:
            row = {what: plain(item), score: round(float(value), 4), "std": round(float(std), 4)}
            yield row if raw is None else {**row, "unclipped": round(float(unclipped), 4)}


def unclipped(top: Top) -> Any:
    """Return the scores before they were clipped, if that has changed any."""
    changed = top.raw is not None and (top.raw != top.scores)[top.scores == top.scores].any()
    return top.raw if changed else None


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return value.item() if hasattr(value, "dtype") else value


def rounded(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each entry of columns, with numbers rounded to four decimals."""
    values = [[plain(value) for value in column] for column in columns.values()]
    return [
        {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in zip(columns, row, strict=True)
        }
        for row in zip(*values, strict=True)
    ]


def formatted(value: Any) -> str:
    """Return a number as text, or text as it is."""
    return value if isinstance(value, str) else f"{value:,.4g}" if value % 1 else f"{value:,.0f}"


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as a table or as JSON."""
    if as_json:
        print(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    if not rows:
        print("there is nothing left to show")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
