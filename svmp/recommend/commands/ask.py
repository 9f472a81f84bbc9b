"""Commands that ask a saved model: `top`, `similar` and `fold-in`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp.errors import ModelError
from svmp.recommend.commands.options import Count, Folder, Json
from svmp.recommend.commands.output import name_skipped, plain, print_rows, ranked, unclipped

if TYPE_CHECKING:
    from svmp.recommend.side import EntityTable

WHOLE = r"0|-?[1-9][0-9]*"
LARGEST = 2**63 - 1


def top(
    model: Folder,
    user: Annotated[list[str], typer.Option(help="Id of a user; may be repeated.")],
    n: Count = 10,
    explore: Annotated[str | None, typer.Option(help="Exploration: thompson or ucb.")] = None,
    width: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1000,
            help="Standard deviations that --explore uses: 1, or 0.5 for thompson on events.",
        ),
    ] = None,
    seen: Annotated[
        bool, typer.Option("--seen", help="Include items that the user has rated.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the draws; by default they are random.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend items to users."""
    from svmp.recommend import load

    if explore not in (None, "thompson", "ucb"):
        raise ModelError(f"--explore must be thompson or ucb, not {explore!r:.60}")
    loaded = load(model)
    users, unknown = known_ids(loaded.users_, "--user", user)
    best = loaded.recommend(
        users,
        n,
        exclude_seen=not seen,
        explore=explore,  # type: ignore[arg-type]
        width=width,
        seed=seed,
    )
    name_skipped("user", unknown)
    raw = unclipped(best)
    rows = [
        {"user": plain(one), **row}
        for place, one in enumerate(users)
        for row in ranked(best.row(place), None if raw is None else raw[place])
    ]
    print_rows(rows, as_json)


def similar(
    model: Folder,
    item: Annotated[str | None, typer.Option(help="Id of an item.")] = None,
    user: Annotated[str | None, typer.Option(help="Or the id of a user.")] = None,
    n: Count = 10,
    as_json: Json = False,
) -> None:
    """List the items most similar to an item, or the users most similar to a user."""
    from svmp.recommend import load

    if (item is None) == (user is None):
        raise ModelError("give an --item or a --user, one of the two")
    loaded = load(model)
    if item is not None:
        best = loaded.similar_items(_ids(loaded.items_, "--item", [item])[0], n)
    else:
        best = loaded.similar_users(_ids(loaded.users_, "--user", [user or ""])[0], n)
    what = "item" if item is not None else "user"
    if loaded.users_.side.factors == 0:
        typer.echo(
            f"svmp: {model} has no factors, so no {what} is more like it than others", err=True
        )
    print_rows(list(ranked((*best,), what=what, score="similarity")), as_json)


def fold_in(
    model: Folder,
    rated: Annotated[
        list[str],
        typer.Option(metavar="ITEM=RATING", help="May be repeated; for events ITEM or ITEM=COUNT."),
    ],
    n: Count = 10,
    as_json: Json = False,
) -> None:
    """Recommend to somebody who is not in the model, by a few of their ratings or events."""
    from svmp.recommend import EventModel, RatingModel, load

    loaded = load(model)
    items, ratings = [], []
    for text in rated:
        pair = text if "=" in text or isinstance(loaded, RatingModel) else f"{text}=1"
        item, equals, rating = pair.rpartition("=")
        try:
            ratings.append(float(rating))
        except ValueError:
            equals = ""
        if not equals or not math.isfinite(ratings[-1]):
            raise ModelError(f"--rated must be ITEM=RATING, as 42=4.5, not {text!r:.60}")
        if item in items:
            raise ModelError(f"--rated has the item {item!s:.60} twice")
        items.append(item)
    if isinstance(loaded, EventModel) and not all(0 < n <= 1e6 for n in ratings):
        raise ModelError("--rated must be ITEM or ITEM=COUNT, with counts from 1 to a million")
    if isinstance(loaded, RatingModel):
        low, high = loaded.range_
        if not all(low <= rating <= high for rating in ratings):
            raise ModelError(f"--rated must have ratings from {low:g} to {high:g}")
    person = loaded.fold_in(_ids(loaded.items_, "--rated", items), ratings)
    best = loaded.recommend(person, n)
    print_rows(list(ranked((*best,), unclipped(best))), as_json)


def _ids(known: EntityTable, flag: str, texts: list[str]) -> Any:
    """Return ids of the type that a model has; raise if one is not in the model."""
    ids, unknown = known_ids(known, flag, texts)
    if unknown:
        raise ModelError(f"{flag}: there is no {known.what} {unknown[0]!s:.60} in the model")
    return ids


def known_ids(known: EntityTable, flag: str, texts: list[str]) -> tuple[list[Any], list[Any]]:
    """Return the ids that are in a model, of its type, and those that are not.

    Raise if they are of another type, or if none is in the model.
    """
    ids: list[Any] = list(texts)
    if known.ids.dtype.kind != "U":
        for place, text in enumerate(texts):
            if not re.fullmatch(WHOLE, text):
                raise ModelError(
                    f"{flag}: the ids of this model are whole numbers, not {text!r:.60}"
                )
            ids[place] = int(text)
    small = [not isinstance(one, int) or abs(one) <= LARGEST for one in ids]
    keys = known.keys([one if fits else 0 for one, fits in zip(ids, small, strict=True)], "prior")
    there = [bool(fits and key >= 0) for fits, key in zip(small, keys, strict=True)]
    found = [one for one, is_there in zip(ids, there, strict=True) if is_there]
    unknown = [one for one, is_there in zip(ids, there, strict=True) if not is_there]
    if unknown and not found:
        raise ModelError(f"{flag}: there is no {known.what} {unknown[0]!s:.60} in the model")
    return found, unknown
