"""Commands that ask a saved model: `top`, `similar` and `fold-in`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp.errors import ModelError
from svmp.interrupts import if_interrupted
from svmp.recommend.commands import rules
from svmp.recommend.commands.ids import known_ids, name_skipped, read_ids
from svmp.recommend.commands.options import Count, Folder, Json
from svmp.recommend.commands.output import plain, print_rows, ranked, unclipped

if TYPE_CHECKING:
    from svmp.recommend.side import EntityTable


def top(
    model: Folder,
    user: Annotated[list[str] | None, typer.Option(help="Id of a user; may be repeated.")] = None,
    users: Annotated[
        Path | None,
        typer.Option(help="File of users: ids in its first column, as text or Parquet."),
    ] = None,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="All users of the model; needs --out.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Parquet or CSV file to write instead of printing."),
    ] = None,
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
    items: rules.Items = None,
    where: rules.Where = None,
    boost: rules.Boost = None,
    quota: rules.Quota = None,
    diversity: rules.Diversity = 0.0,
    candidates: rules.Candidates = None,
    exclude: rules.Exclude = None,
    as_json: Json = False,
) -> None:
    """Recommend items to users: a few, those in a file, or all.

    Users that are not in the model are skipped, and named.
    """
    from svmp.recommend import load
    from svmp.recommend.export import check_file

    if sum((bool(user), users is not None, all_users)) != 1:
        raise ModelError("give --user, --users or --all-users, one of the three")
    if all_users and out is None:
        raise ModelError("--all-users needs --out, a Parquet or CSV file, as top.parquet")
    if explore not in (None, "thompson", "ucb"):
        raise ModelError(f"--explore must be thompson or ucb, not {explore!r:.60}")
    if out is not None:
        check_file(out)
    loaded = load(model)
    asked: list[Any] | None = None
    unknown: list[Any] = []
    if user:
        asked, unknown = known_ids(loaded.users_, "--user", user)
    elif users is not None:
        asked, unknown = known_ids(loaded.users_, "--users", read_ids(users, loaded.users_))
    options: dict[str, Any] = {"exclude_seen": not seen, "explore": explore}
    options |= {"width": width, "seed": seed}
    of_items = items, where, boost, quota, diversity, candidates, exclude
    options |= rules.rules_of(loaded, *of_items)
    name_skipped("user", unknown)
    if out is not None:
        with if_interrupted(f"{out} is not written"):
            written = loaded.recommend_all(out, n, users=asked, **options)
        about = {"file": str(out), "users": written.users, "rows": written.rows}
        print_rows([about], as_json)
        return
    assert asked is not None
    best = loaded.recommend(asked, n, **options)
    raw = unclipped(best)
    rows = [
        {"user": plain(one), **row}
        for place, one in enumerate(asked)
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
    about: rules.Items = None,
    where: rules.Where = None,
    boost: rules.Boost = None,
    quota: rules.Quota = None,
    diversity: rules.Diversity = 0.0,
    candidates: rules.Candidates = None,
    exclude: rules.Exclude = None,
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
    of_items = about, where, boost, quota, diversity, candidates, exclude
    best = loaded.recommend(person, n, **rules.rules_of(loaded, *of_items))
    print_rows(list(ranked((*best,), unclipped(best))), as_json)


def _ids(known: EntityTable, flag: str, texts: list[str]) -> Any:
    """Return ids of the type that a model has; raise if one is not in the model."""
    ids, unknown = known_ids(known, flag, texts)
    if unknown:
        raise ModelError(f"{flag}: there is no {known.what} {unknown[0]!s:.60} in the model")
    return ids
