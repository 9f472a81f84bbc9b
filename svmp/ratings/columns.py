"""Find the columns of users, items, ratings and times in a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svmp.errors import Interface, RatingsError, argument, called

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
"""Columns of user, item, rating and optionally time: in this order, or a dict by these words."""


def plain(name: object) -> str:
    """Normalise a name for comparison: lower case, without punctuation."""
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def is_usual(name: str) -> bool:
    """Whether this is a usual name of a column of ratings."""
    return any(plain(name) in names for names in USUAL.values())


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns to read: the given ones, or those with the usual names.

    Events need no column of ratings.
    """

    columns: Columns | None = None
    events: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """Roles that are required."""
        return ROLES[:2] if self.events else ROLES[:3]

    def among(self, source: str, names: Sequence[str], header: bool) -> dict[str, int]:
        """Return the positions of the columns by role: user, item, rating and time if present.

        >>> ColumnSelection().among("a.csv", ["", "movieId", "userId", "rating"], header=True)
        {'user': 2, 'item': 1, 'rating': 3}
        >>> ColumnSelection().among("a.csv", ["0", "1", "2"], header=False)
        {'user': 0, 'item': 1, 'rating': 2}
        >>> ColumnSelection(events=True).among("a.csv", ["user", "item", "date"], header=True)
        {'user': 0, 'item': 1, 'time': 2}
        """
        if self.columns is not None:
            named = self.by_role(self.columns)
            return {r: _position(source, names, c, header) for r, c in named.items()}
        if not header:
            if len(names) < len(self.needed):
                many = "column" if len(names) == 1 else "columns"
                least = (
                    "users and items take two"
                    if self.events
                    else ("users, items and ratings take three")
                )
                raise RatingsError(f"{source}: a row has {len(names)} {many}; {least}")
            return {role: place for place, role in enumerate(ROLES[: len(names)])}
        found = {}
        for role, usual in USUAL.items():
            places = [place for place, name in enumerate(names) if plain(name) in usual]
            if places:
                found[role] = places[0]
            elif role in self.needed:
                some = argument("columns", "('who', 'what', 'stars')", "who,what,stars")
                raise RatingsError(
                    f"{source}: which column is the {role}? There are {_listed(names)}; say it "
                    f"with {called('columns')}, as {some}"
                )
        return found

    def check(self) -> None:
        """Raise if the given columns are neither names nor positions."""
        for column in self.by_role(self.columns).values() if self.columns is not None else ():
            if type(column) not in (str, int) or (isinstance(column, int) and column < 0):
                raise RatingsError(
                    f"{called('columns')} must be names, or positions from 0, not {column!r:.60}"
                )

    def by_role(self, columns: Columns) -> dict[str, str | int]:
        """Return the given columns by role."""
        if not isinstance(columns, Mapping | Sequence):
            raise RatingsError(
                f"{called('columns')} must be names or positions, not {columns!r:.80}"
            )
        if isinstance(columns, Mapping):
            if set(columns) - set(ROLES) or set(self.needed) - set(columns):
                needed = "user and item" if self.events else "user, item, rating"
                more = "rating and time" if self.events else "time"
                raise RatingsError(
                    f"{called('columns')} has {list(columns)}; it needs {needed} and optionally "
                    f"{more}"
                )
            return {role: columns[role] for role in ROLES if role in columns}
        if isinstance(columns, str) or not len(self.needed) <= len(columns) <= len(ROLES):
            least = "two, three or four" if self.events else "three or four"
            given = ",".join(map(str, columns)) if Interface.flags else repr(columns)
            raise RatingsError(
                f"{called('columns')} must be {least} names or positions, not {given:.80}"
            )
        return dict(zip(ROLES, columns, strict=False))


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
