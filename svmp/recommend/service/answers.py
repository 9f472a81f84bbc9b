"""From the body of a request to the body of a response."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from svmp.errors import ModelError, UnknownError
from svmp.recommend.events import EventModel
from svmp.recommend.factor_model import Person, Top
from svmp.recommend.item_table import ItemTable
from svmp.recommend.ranking import is_by_user
from svmp.recommend.rating import RatingModel
from svmp.recommend.service import bodies
from svmp.recommend.service.catalogue import Catalogue, Titles

Answer = dict[str, Any]
ROWS = 100_000
"""Maximum number of items in a response."""
PARTS = 10
"""Number of contributions in an explanation."""
EVENTS = 10_000
"""Maximum number of events in a history."""
REASONS = 1_000
"""Limit of the number of explained items times the length of the history."""


class ServedModel:
    """The model in use. It is immutable, so that a request sees one model only."""

    def __init__(
        self,
        model: RatingModel | EventModel,
        titles: Titles | None,
        name: str,
        batch: int,
        items: ItemTable | None = None,
    ) -> None:
        self.model, self.items = model, items
        if items is not None:
            items.rows(model.items_.ids)  # raise now if it has none of the items
        self.catalogue = Catalogue(model, titles)
        self.batch = batch
        self.about: Answer = {
            "kind": type(model).__name__,
            "users": len(model.users_),
            "items": len(model.items_),
            "range": list(model.range_) if isinstance(model, RatingModel) else None,
            "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": name,
            "columns": [] if items is None else items.columns,
        }

    # --- requests --------------------------------------------------------------------------

    def recommend(self, asked: bodies.Recommend) -> Answer:
        """Return the best items for users."""
        self._check("users", asked.users)
        if len(asked.users) * asked.n > ROWS:
            raise ModelError(f"users times n must be at most {ROWS:,}")
        users = np.array(asked.users) if asked.users else np.zeros(0, self.model.users_.ids.dtype)
        top = self.model.recommend(users, unknown=asked.unknown, **self._ranking(asked))
        rows = []
        for place, user in enumerate(listed(top.users)):
            there = top.scores[place] == top.scores[place]
            items, scores, stds, raw = (x[place][there] for x in (*top, top.raw))
            some = Top(items, scores, stds, raw=raw)
            rows.append({"user": user, "items": self._scored(user, some, asked)})
        found: Answer = {"users": rows}
        return found if asked.unknown != "skip" else {**found, "skipped": list(top.skipped)}

    def fold_in(self, asked: bodies.FoldIn) -> Answer:
        """Return the best items for somebody who is not in the model."""
        person = self._person(asked.history)
        top = self.model.recommend(person, **self._ranking(asked))
        return {"items": self._scored(person, top, asked)}

    def predict(self, asked: bodies.Predict) -> Answer:
        """Return predictions for items."""
        self._check("items", asked.items)
        if (asked.users is None) == (asked.history is None):
            raise ModelError("give users or history, one of the two")
        who: Any = asked.users
        if asked.history is not None:
            who = self._person(asked.history)
        else:
            self._check("users", asked.users)
        if not asked.items or who == []:
            return {"predictions": []}
        return {"predictions": self._predicted(who, asked.items, asked.level, asked.unknown)}

    def similar(self, asked: bodies.Similar) -> Answer:
        """Return the items most similar to an item, or the users most similar to a user."""
        if (asked.item is None) == (asked.user is None):
            raise ModelError("give item or user, one of the two")
        if asked.item is not None:
            what, top = "item", self.model.similar_items(asked.item, asked.n)
        else:
            what, top = "user", self.model.similar_users(asked.user, asked.n)
        rows = [
            {what: one, "similarity": similarity, "std": std}
            for one, similarity, std in zip(*map(listed, top), strict=True)
        ]
        return {"similar": [*map(self.catalogue.entitled, rows)] if what == "item" else rows}

    def explain(self, asked: bodies.Explain) -> Answer:
        """Return explanations of the scores of items."""
        self._check("items", asked.items)
        if (asked.user is None) == (asked.history is None):
            raise ModelError("give user or history, one of the two")
        who: Any = asked.user if asked.history is None else self._person(asked.history)
        if len(asked.items) * len(asked.history or [0]) > REASONS:
            raise ModelError(f"items times history must be at most {REASONS:,}")
        return {"explanations": [self._reason(who, item) for item in asked.items]}

    def search(self, text: str, n: int) -> Answer:
        """Return items whose title contains all words of a text."""
        catalogue = self.catalogue
        keys = catalogue.search(text, n)
        rows = zip(catalogue.ids[keys].tolist(), catalogue.ratings[keys].tolist(), strict=True)
        return {"items": [catalogue.entitled({"item": i, "ratings": count}) for i, count in rows]}

    # --- parts of responses ----------------------------------------------------------------

    def _check(self, name: str, given: Any) -> None:
        if len(given or ()) > self.batch:
            raise ModelError(f"{name}: at most {self.batch:,} at a time, not {len(given):,}")

    def _ranking(self, asked: bodies.Ranking) -> dict[str, Any]:
        given: Any = asked.candidates
        all_given = [one for some in given for one in some] if is_by_user(given) else given
        self._check("candidates", all_given)
        self._check("exclude", asked.exclude)
        return {
            "n": asked.n,
            "exclude_seen": asked.exclude_seen,
            "candidates": asked.candidates,
            "exclude": asked.exclude,
            **self._rules(asked),
            "explore": asked.explore,
            "width": asked.width,
            "seed": asked.seed,
            "progress": False,
        }

    def _rules(self, asked: bodies.Ranking) -> dict[str, Any]:
        """Return the filters, boosts and quotas of a request."""
        where = {
            column: condition.model_dump(by_alias=True, exclude_none=True)
            if isinstance(condition, bodies.Limits)
            else condition
            for column, condition in (asked.where or {}).items()
        }
        rules = {"where": where, "boost": asked.boost, "quota": asked.quota}
        if self.items is None and any(rules.values()):
            raise ModelError(
                "where, boost and quota need a table of items, and the service was started without"
            )
        return {**rules, "items": self.items, "diversity": asked.diversity}

    def _person(self, history: list[bodies.Rated]) -> Person:
        """Return q of somebody with a history."""
        self._check("history", history)
        items = [rated.item for rated in history]
        if len(set(items)) < len(items):
            raise ModelError("history: there is an item twice")
        if isinstance(self.model, EventModel):
            counts = [1.0 if rated.rating is None else rated.rating for rated in history]
            if any(not 1 <= count == int(count) for count in counts) or sum(counts) > EVENTS:
                raise ModelError(
                    f"history: a rating is a count, with a total of at most {EVENTS:,}, or absent"
                )
            return self.model.fold_in(items, counts if self.model.counts else None)
        low, high = self.model.range_
        ratings = [rated.rating for rated in history]
        for rating in ratings:
            if rating is None or not low <= rating <= high:
                raise ModelError(f"history: each item needs a rating from {low:g} to {high:g}")
        return self.model.fold_in(items, ratings)

    def field_of(self, asked: Any) -> str:
        """Return the field of a request that has an unknown id."""
        for name in ("users", "user", "items", "item", "candidates", "exclude", "history"):
            given = getattr(asked, name, None)
            if given is None or given == []:
                continue
            ids = [rated.item for rated in given] if name == "history" else given
            if name == "candidates" and is_by_user(given):
                ids = [one for some in given for one in some]
            known = self.model.users_ if name.startswith("user") else self.model.items_
            optional = name in ("users", "items")
            strict = not optional or getattr(asked, "unknown", "error") == "error"
            try:
                known.keys(ids, "error" if strict and name != "exclude" else "prior")
            except UnknownError:
                return name
        return "request"

    def _scored(self, who: Any, top: Top, asked: bodies.Ranking) -> list[Answer]:
        rows = [
            {"item": item, "score": score, "std": std, "unclipped": raw}
            for item, score, std, raw in zip(*map(listed, (*top, top.raw)), strict=True)
        ]
        for row in rows:
            if row["unclipped"] == row["score"]:
                del row["unclipped"]
        if asked.level is not None and rows:
            more = self._predicted(who, top[0], asked.level, "prior")
            for row, prediction in zip(rows, more, strict=True):
                row |= {name: prediction[name] for name in ("mean", "low", "high")}
        return [*map(self.catalogue.entitled, rows)]

    def _predicted(self, who: Any, items: Any, level: float | None, unknown: str) -> list[Answer]:
        mean, std = self.model.predict(who, items, return_std=True, unknown=unknown)
        columns = {"mean": mean, "std": std}
        if level is not None:
            low, high = self.model.predict_interval(who, items, level, unknown=unknown)
            columns |= {"low": low, "high": high}
        rows = zip(*map(listed, columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _reason(self, who: Any, item: Any) -> Answer:
        why = self.model.explain(who, item)
        parts = [
            self.catalogue.entitled({"item": one, "rating": rating, "part": part})
            for one, rating, part in zip(
                *(listed(x[:PARTS]) for x in (why.items, why.ratings, why.parts)), strict=True
            )
        ]
        score, base, rest = listed(np.array([why.prediction, why.base, why.rest]))
        found = {"item": item, "score": score, "base": base, "parts": parts, "rest": rest}
        return self.catalogue.entitled(found)


def listed(column: Any) -> list[Any]:
    """Return an array as a list, with floats rounded to six decimals."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return list(np.round(column.astype(np.float64), 6).tolist())
