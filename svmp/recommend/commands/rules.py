"""Rules for recommendations on the command line: filters, boosts, quotas, candidates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp.errors import ModelError
from svmp.recommend.commands.ids import known_ids, name_skipped, read_ids

if TYPE_CHECKING:
    from svmp.recommend.factor_model import FactorModel

Items = Annotated[
    Path | None,
    typer.Option(
        "--items", help="CSV or Parquet file about items, for --where, --boost and --quota."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="As genre=comedy, genre!=horror, stock>=1 or year<=1999; may be repeated. Of several "
        "values of a column one is enough.",
    ),
]
Boost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN[=VALUE]:POINTS",
        help="Points to add to scores before ranking, as genre=comedy:0.3, or for each unit of "
        "numbers, as year:0.01; may be repeated.",
    ),
]
Quota = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN[=VALUE]:NUMBER",
        help="Most items of a list with the same value, as genre:2, or with one, as "
        "genre=horror:1; may be repeated.",
    ),
]
Diversity = Annotated[
    float,
    typer.Option(min=0, help="Points that an item loses if one just like it is before it."),
]
Candidates = Annotated[
    Path | None,
    typer.Option(help="File of the only items to recommend: ids in its first column."),
]
Exclude = Annotated[
    Path | None, typer.Option(help="File of items not to recommend: ids in its first column.")
]
CONDITION = re.compile(r"(?s)(.+?)(!=|>=|<=|=)(.*)")
AMOUNT = re.compile(r"(?s)([^=]+?)(?:=(.*))?:([^:]*)")


def rules_of(
    model: FactorModel,
    items: Path | None,
    where: list[str] | None,
    boost: list[str] | None,
    quota: list[str] | None,
    diversity: float,
    candidates: Path | None,
    exclude: Path | None,
) -> dict[str, Any]:
    """Return the options as arguments of `recommend`."""
    if items is None and (where or boost or quota):
        raise ModelError("--where, --boost and --quota need --items, a file about the items")
    rules: dict[str, Any] = {
        "items": items,
        "where": conditions(where or []),
        "boost": amounts("--boost", boost or [], float),
        "quota": amounts("--quota", quota or [], int),
        "diversity": diversity,
    }
    for name, path in (("candidates", candidates), ("exclude", exclude)):
        if path is not None:
            known = model.items_
            ids, unknown = known_ids(known, f"--{name}", read_ids(path, known))
            name_skipped("item", unknown)
            rules[name] = ids
    return rules


def conditions(texts: list[str]) -> dict[str, Any]:
    """Return conditions by column.

    >>> conditions(["genre=comedy", "genre=drama", "stock>=1", "stock<=9"])
    {'genre': ['comedy', 'drama'], 'stock': {'min': '1', 'max': '9'}}
    """
    found: dict[str, dict[str, Any]] = {}
    kinds = {"=": "any", "!=": "not", ">=": "min", "<=": "max"}
    for text in texts:
        parts = CONDITION.fullmatch(text)
        if parts is None:
            raise ModelError(
                f"--where must be as genre=comedy, genre!=horror, stock>=1 or year<=1999, not "
                f"{text!r:.60}"
            )
        column, kind, value = parts[1].strip(), kinds[parts[2]], parts[3].strip()
        own = found.setdefault(column, {})
        if kind in ("any", "not"):
            own.setdefault(kind, []).append(value)
        elif kind in own:
            raise ModelError(f"--where has two limits {parts[2]} of {column!r:.60}")
        else:
            own[kind] = value
    for column, own in found.items():
        if "any" in own and len(own) > 1:
            raise ModelError(f"--where has = and other conditions of {column!r:.60}")
    return {column: own.get("any", own) for column, own in found.items()}


def amounts(flag: str, texts: list[str], kind: type) -> dict[str, Any]:
    """Return numbers by column, or by column and value.

    >>> amounts("--quota", ["genre=horror:1", "studio:2"], int)
    {'genre': {'horror': 1}, 'studio': 2}
    """
    found: dict[str, Any] = {}
    for text in texts:
        parts = AMOUNT.fullmatch(text)
        try:
            if parts is None:
                raise ValueError
            number = kind(parts[3])
        except ValueError:
            what = "a number" if kind is float else "a whole number"
            raise ModelError(
                f"{flag} must be a column, or a column and a value, and {what}, as genre:2 or "
                f"genre=horror:1, not {text!r:.60}"
            ) from None
        assert parts is not None
        column, value = parts[1].strip(), parts[2]
        by_value = value is not None
        if column in found and not (by_value and isinstance(found[column], dict)):
            raise ModelError(f"{flag} has the column {column!r:.60} twice")
        if by_value:
            found.setdefault(column, {})[value.strip()] = number
        else:
            found[column] = number
    return found
