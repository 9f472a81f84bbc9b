"""The items that users get: which may be recommended, and the best of them, by blocks of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError, called
from svmp.inference.running.seeds import Seed
from svmp.recommend.estimator import check_number, check_whole
from svmp.recommend.item_table import ItemTable
from svmp.recommend.picking import Picker, Quotas
from svmp.recommend.side import EntityTable, Floats, Keys, Side, score
from svmp.recommend.similar import Similarity
from svmp.recommend.top import BLOCK, CELLS, Explore, best


class Ranked(Protocol):
    """What is ranked: the part of a `FactorModel` that its lists read."""

    WIDTHS: ClassVar[dict[str, float]]
    items_: EntityTable
    users_: EntityTable

    def _ranked(self) -> Side: ...

    def _scorer(
        self, items: Side, explore: Explore, width: float, seed: Seed
    ) -> Callable[[int, Side], Floats]: ...

    def _similarity(self, known: EntityTable, others: EntityTable) -> Similarity: ...

    def _pair_scores(self, users: Side, items: Side) -> tuple[Floats, Floats]: ...


class Rules(NamedTuple):
    """What may be recommended, and by which score: see `FactorModel.recommend`."""

    exclude_seen: bool = True
    candidates: Any = None
    exclude: Any = None
    explore: Explore = None
    width: float | None = None
    seed: Seed = None
    items: Any = None
    where: Mapping[str, Any] | None = None
    boost: Mapping[str, Any] | None = None
    quota: Mapping[str, Any] | None = None
    diversity: float = 0.0

    def table(self) -> ItemTable:
        """Return the table of items; raise if there is none."""
        if self.items is None:
            raise ModelError(
                f"{called('where')}, {called('boost')} and {called('quota')} need "
                f"{called('items')}: a table with a row for each item"
            )
        return self.items if isinstance(self.items, ItemTable) else ItemTable(self.items)


class Lists(NamedTuple):
    """A list of items for each user: those of user m are `items[begin[m]:begin[m + 1]]`."""

    begin: Keys
    items: Keys

    @property
    def row(self) -> Keys:
        """The user of each item."""
        return np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin))

    def at(self, rows: slice) -> Lists:
        """Return the lists of some users."""
        begin = self.begin[rows.start : rows.stop + 1]
        return Lists(begin - begin[0], self.items[begin[0] : begin[-1]])

    def among(self, place: Keys) -> Lists:
        """Return the lists as places of items, without those whose place is -1."""
        there = place[self.items] >= 0
        begin = np.concatenate([[0], np.cumsum(there)])[self.begin]
        return Lists(begin, place[self.items][there])


class Block(NamedTuple):
    """The best items of some users: keys, -1 where there are none; unclipped scores, and sds."""

    items: Keys
    raw: Floats
    stds: Floats


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks items for users.

    Attributes
    ----------
    model
        The model.
    n
        Number of items of each user.
    keys
        Keys of the items that may be recommended to anybody; None for all.
    items
        q of these items.
    scores
        Function of the number and the users of a block that scores them on the items.
    exclude_seen
        Whether users do not get items that they have rated.
    own
        Places among the items that each user alone may get; None if there are no such lists.
    boost
        What is added to the score of each item; None for nothing.
    picker
        Picks lists with quotas and diversity; None without these.
    """

    model: Ranked
    n: int
    keys: Keys | None
    items: Side
    scores: Callable[[int, Side], Floats]
    exclude_seen: bool
    own: Lists | None
    boost: Floats | None = None
    picker: Picker | None = None

    @classmethod
    def of(cls, model: Ranked, n: int, rules: Rules, kept: NDArray[np.bool_]) -> Ranking:
        """Check the rules, and prepare the items; `kept` tells which of the users get any."""
        check_whole("n", n, 0)
        explore = rules.explore
        if explore not in (None, "thompson", "ucb"):
            raise ModelError(f"explore must be None, 'thompson' or 'ucb', not {explore!r:.60}")
        width = model.WIDTHS.get(str(explore), 1.0) if rules.width is None else rules.width
        check_number("width", width, 0)
        check_number("diversity", rules.diversity, 0)
        if rules.where or rules.boost or rules.quota:  # read it once
            rules = rules._replace(items=rules.table())
        lists = lists_of(rules.candidates, model, kept)
        keys = _allowed(model, rules, lists)
        items = model._ranked() if keys is None else model._ranked().at(keys)
        own = lists if lists is None or keys is None else lists.among(_places(model, keys))
        scores = model._scorer(items, explore, width, rules.seed)
        boost, picker = _boost(model, rules, keys), _picker(model, rules, keys)
        n = min(n, len(items))
        return cls(model, n, keys, items, scores, rules.exclude_seen, own, boost, picker)

    @property
    def size(self) -> int:
        """Number of users of a block."""
        return max(1, min(BLOCK, CELLS // max(len(self.items), 1)))

    def block(self, start: int, users: Side, seen: Lists) -> Block:
        """Return the best items of a block of users, the first of which is number `start`.

        `seen` has the items that each has rated.
        """
        rows = slice(start, start + len(users))
        scores = self.scores(start // self.size, users)
        if self.boost is not None:
            scores = scores + self.boost
        if self.own is not None:
            keep_only(scores, self.own.at(rows))
        if not self.exclude_seen:
            seen = Lists(np.zeros(len(users) + 1, np.int64), np.zeros(0, np.int64))
        elif self.keys is not None:
            seen = seen.among(_places(self.model, self.keys))
        places = np.full((len(users), self.n), -1, np.int64)
        if self.picker is None:
            best(scores, self.n, *seen, places)
        else:
            self.picker.pick(scores, self.n, *seen, places)
        raw, stds = self._scored(users, places)
        if self.keys is not None:
            places = np.where(places < 0, -1, self.keys[places])
        return Block(places, raw, stds)

    def _scored(self, users: Side, places: Keys) -> tuple[Floats, Floats]:
        """Return expected scores and standard deviations at places, NaN at -1."""
        rows, count = places.shape
        if not places.size:
            return np.zeros(places.shape, np.float32), np.zeros(places.shape, np.float32)
        pairs = (
            users.at(np.repeat(np.arange(rows), count)),
            self.items.at(np.maximum(places, 0).ravel()),
        )
        found = self.model._pair_scores(*pairs)
        raw, std = (np.where(places < 0, np.nan, x.reshape(places.shape)) for x in found)
        return raw, std


def keep_only(scores: Floats, lists: Lists) -> None:
    """Set the scores of each user at all places but those of their list to -inf, in place."""
    kept = scores[lists.row, lists.items]
    scores.fill(-np.inf)
    scores[lists.row, lists.items] = kept


def lists_of(candidates: Any, model: Ranked, kept: NDArray[np.bool_]) -> Lists | None:
    """Return candidates of the users that are kept; None if they are the same for all users."""
    if not is_by_user(candidates):
        return None
    if len(candidates) != len(kept):
        raise ModelError(
            f"{called('candidates')} has {len(candidates):,} lists for {len(kept):,} users; give "
            "a list for each user, or a single list of ids for all"
        )
    candidates = [one for one, keep in zip(candidates, kept, strict=True) if keep]
    counts = [len(one) for one in candidates]
    ids: list[Any] = [id for one in candidates for id in one]
    keys = model.items_.keys(ids) if ids else np.zeros(0, np.int64)
    return Lists(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), keys)


def is_by_user(candidates: Any) -> bool:
    """Whether candidates are a list for each user."""
    if isinstance(candidates, np.ndarray) and candidates.dtype != object:
        return candidates.ndim > 1
    if candidates is None or isinstance(candidates, str) or not hasattr(candidates, "__len__"):
        return False
    nested = [not isinstance(x, str) and hasattr(x, "__len__") for x in candidates]
    if any(nested) and not all(nested):
        raise ModelError(
            f"{called('candidates')} has both ids and lists of ids; give a list for each user, or "
            "a single list of ids for all"
        )
    return any(nested)


def _allowed(model: Ranked, rules: Rules, lists: Lists | None) -> Keys | None:
    """Return the keys of the items that anybody may get, or None for all."""
    if rules.candidates is None and rules.exclude is None and not rules.where:
        return None
    if lists is not None:
        some = np.unique(lists.items)
    elif rules.candidates is not None:
        some = np.unique(model.items_.keys(rules.candidates))
    else:
        some = np.arange(len(model.items_))
    if rules.exclude is not None:
        some = np.setdiff1d(some, model.items_.keys(rules.exclude, "prior"))
    if rules.where:
        some = some[rules.table().matches(model.items_.ids, rules.where)[some]]
    return some


def _boost(model: Ranked, rules: Rules, keys: Keys | None) -> Floats | None:
    """Return what is added to the scores of some items, or of all."""
    if not rules.boost:
        return None
    points = rules.table().boosts(model.items_.ids, rules.boost)
    return points if keys is None else points[keys]


def _picker(model: Ranked, rules: Rules, keys: Keys | None) -> Picker | None:
    """Return what picks among some items, or all; None without quotas and diversity."""
    if not rules.quota and not rules.diversity:
        return None
    unit = model._similarity(model.items_, model.users_).unit
    codes, limits = np.full((len(unit), 1), -1, np.int32), np.zeros(1, np.int64)
    if rules.quota:
        codes, limits = rules.table().quotas(model.items_.ids, rules.quota)
    if keys is not None:
        codes, unit = codes[keys], unit[keys]
    return Picker(Quotas(codes, limits), np.ascontiguousarray(unit), rules.diversity)


def _places(model: Ranked, keys: Keys) -> Keys:
    """Return the place of each item of the model among some, -1 if it is not one of them."""
    place = np.full(len(model.items_), -1)
    place[keys] = np.arange(len(keys))
    return place


def labels(ids: NDArray[Any], places: Keys) -> NDArray[Any]:
    """Return the ids at some places; -1, or an empty string, where the place is -1."""
    if not len(ids):
        return np.zeros(places.shape, ids.dtype)
    absent = "" if ids.dtype.kind == "U" else -1
    return np.where(places < 0, absent, ids[np.maximum(places, 0)])


def pair_scores(users: Side, items: Side, offset: float) -> tuple[Floats, Floats]:
    """Return expected scores of pairs and their standard deviations."""
    mean, var = score(users, items)
    return mean + offset, np.sqrt(var)
