"""Which columns of a table are the users, the items, the ratings and the times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from svmp.errors import RatingsError

ROLES = ("user", "item", "rating", "time")
THINGS = "item movie film book product song track artist game anime business show title joke recipe"
NAMES = {
    "user": "user userid customer customerid reviewer reviewerid member memberid uid u userindex "
    "username person personid rater",
    "item": " ".join([f"{x} {x}id" for x in THINGS.split()] + ["isbn", "asin", "iid", "i"]),
    "rating": "rating ratings score scores stars star bookrating userrating overall value r "
    "count counts plays playcount clicks events quantity",
    "time": "timestamp time date datetime ratedat createdat unixreviewtime tstamp ratingtimestamp",
}
USUAL = {role: frozenset(names.split()) for role, names in NAMES.items()}
Columns = Sequence[str | int] | Mapping[str, str | int]
"""The columns of user, item, rating and maybe time: in this order, or by these words."""


def plain(name: object) -> str:
    """Return a name without its capitals and signs, as names are compared."""
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def is_usual(name: str) -> bool:
    """Say whether a table of ratings usually has a column of this name."""
    return any(plain(name) in names for names in USUAL.values())


def choose(source: str, names: Sequence[str], columns: Columns | None, header: bool) -> list[int]:
    """Return the positions of user, item, rating and, if there is one, time.

    >>> choose("a.csv", ["", "movieId", "userId", "rating"], None, header=True)
    [2, 1, 3]
    >>> choose("a.csv", ["0", "1", "2"], None, header=False)
    [0, 1, 2]
    """
    if columns is not None:
        return [_position(source, names, c, header) for c in _ordered(columns)]
    if not header:
        if len(names) < 3:
            raise RatingsError(
                f"{source}: a row has {len(names)} {'column' if len(names) == 1 else 'columns'}; "
                "users, items and ratings take three"
            )
        return list(range(min(len(names), 4)))
    found = {}
    for role, usual in USUAL.items():
        places = [place for place, name in enumerate(names) if plain(name) in usual]
        if places:
            found[role] = places[0]
        elif role != "time":
            raise RatingsError(
                f"{source}: which column is the {role}? There are {_listed(names)}; say it with "
                "columns=, as columns=('who', 'what', 'stars')"
            )
    return [found[role] for role in ROLES if role in found]


def _ordered(columns: Columns) -> list[str | int]:
    if isinstance(columns, Mapping):
        unknown = [key for key in columns if key not in ROLES]
        missing = [role for role in ROLES[:3] if role not in columns]
        if unknown or missing:
            raise RatingsError(
                f"columns has {list(columns)}; it needs user, item, rating and, if you like, time"
            )
        return [columns[role] for role in ROLES if role in columns]
    if isinstance(columns, str) or len(columns) not in (3, 4):
        raise RatingsError(f"columns must be three or four names or positions, not {columns!r:.80}")
    return list(columns)


def _position(source: str, names: Sequence[str], column: Any, header: bool) -> int:
    if isinstance(column, str):
        if column in names and header:
            return list(names).index(column)
        alike = [place for place, name in enumerate(names) if plain(name) == plain(column)]
        if header and plain(column) and len(alike) == 1:
            return alike[0]
        there = f"there are {_listed(names)}" if header else "it has no header"
        raise RatingsError(f"{source}: there is no column {column!r:.60}; {there}")
    if type(column) is not int or not 0 <= column < len(names):
        raise RatingsError(
            f"{source}: there is no column {column!r:.60}; positions are 0 to {len(names) - 1}"
        )
    return column


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name)[:40] for name in names[:12])
    return shown if len(names) <= 12 else f"{shown}, ..."
