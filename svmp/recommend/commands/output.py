"""What commands print: tables for people, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def ranked(
    items: Any, scores: Any, stds: Any, what: str = "item", score: str = "score"
) -> Iterator[dict[str, Any]]:
    """Yield a row for each item of a ranking, without those that only fill it up."""
    for item, value, std in zip(items, scores, stds, strict=True):
        if value == value:
            yield {what: plain(item), score: round(float(value), 4), "std": round(float(std), 4)}


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return value.item() if hasattr(value, "dtype") else value


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
