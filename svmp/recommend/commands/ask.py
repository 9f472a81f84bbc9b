"""Commands that ask a saved model: `top`, `similar`, `fold-in`, `predict` and `explain`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp.errors import ModelError
from svmp.interrupts import if_interrupted
from svmp.recommend.commands import rules
from svmp.recommend.commands.ids import known_ids, name_skipped, read_ids
from svmp.recommend.commands.options import Count, Folder, Json
from svmp.recommend.commands.output import plain, print_rows, ranked, rounded, unclipped

if TYPE_CHECKING:
    from svmp.recommend.factor_model import FactorModel, Person
    from svmp.recommend.side import EntityTable


RATED = typer.Option(
    metavar="ITEM=RATING",
    help="What somebody who is not in the model has rated; may be repeated; for events ITEM or "
    "ITEM=COUNT.",
)
Rated = Annotated[list[str] | None, RATED]


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
    rated: Annotated[list[str], RATED],
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
    from svmp.recommend import load

    loaded = load(model)
    person = person_of(loaded, rated)
    of_items = about, where, boost, quota, diversity, candidates, exclude
    best = loaded.recommend(person, n, **rules.rules_of(loaded, *of_items))
    print_rows(list(ranked((*best,), unclipped(best))), as_json)


def predict(
    model: Folder,
    user: Annotated[str | None, typer.Option(help="Id of a user.")] = None,
    item: Annotated[list[str] | None, typer.Option(help="Id of an item; may be repeated.")] = None,
    rated: Rated = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Or a CSV or Parquet file of pairs: users and items in two columns."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="CSV or Parquet file to write instead of printing."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.9,
    as_json: Json = False,
) -> None:
    """Predict ratings, or probabilities of events, with intervals.

    Users and items of a file that are not in the model are predicted as without any data.
    """
    from svmp.recommend import load
    from svmp.recommend.commands.pairs import check_out, read_pairs, write_rows

    if (pairs is None) == (not item) or (pairs is not None and (user is not None or rated)):
        raise ModelError("give --item, and --user or --rated; or --pairs")
    if out is not None:
        check_out(out)
    loaded = load(model)
    who: Any
    if pairs is not None:
        who, items = read_pairs(pairs, loaded)
        unknown = "prior"
    else:
        who, unknown = one_of(loaded, user, rated), "error"
        items = _ids(loaded.items_, "--item", item or [])
    mean, std = loaded.predict(who, items, return_std=True, unknown=unknown)
    low, high = loaded.predict_interval(who, items, level, unknown=unknown)
    columns: dict[str, Any] = {"item": items, "mean": mean, "std": std, "low": low, "high": high}
    if pairs is not None:
        columns = {"user": who, **columns}
    if out is not None:
        with if_interrupted(f"{out} is not written"):
            write_rows(out, columns)
        print_rows([{"file": str(out), "rows": len(items)}], as_json)
        return
    print_rows(rounded(columns), as_json)


def explain(
    model: Folder,
    item: Annotated[str, typer.Option(help="Id of the item.")],
    user: Annotated[str | None, typer.Option(help="Id of a user.")] = None,
    rated: Rated = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Maximum number of contributions.")] = 10,
    as_json: Json = False,
) -> None:
    """Explain a score: how much each rating of a user, or each event, contributes to it."""
    from svmp.recommend import load

    loaded = load(model)
    who = one_of(loaded, user, rated)
    why = loaded.explain(who, _ids(loaded.items_, "--item", [item])[0])
    parts = rounded({"item": why.items[:n], "rating": why.ratings[:n], "part": why.parts[:n]})
    others = float(why.parts[n:].sum())
    total = {"score": why.prediction, "base": why.base, "others": others, "rest": why.rest}
    sums = {name: round(float(value), 4) for name, value in total.items()}
    if as_json:
        print(json.dumps({**sums, "parts": parts}))
        return
    empty = {"rating": ""}
    rows = [{"item": "without any ratings", **empty, "part": sums["base"]}, *parts]
    rows += [{"item": f"{len(why.parts) - n:,} other ratings", **empty, "part": sums["others"]}] * (
        len(why.parts) > n
    )
    rows += [{"item": "rest", **empty, "part": sums["rest"]}]
    print_rows([*rows, {"item": "score", **empty, "part": sums["score"]}], False)


def one_of(loaded: FactorModel, user: str | None, rated: list[str] | None) -> Any:
    """Return the id of a user of the model, or somebody with some ratings."""
    if (user is None) == (not rated):
        raise ModelError("give a --user, or what somebody has --rated, one of the two")
    if rated:
        return person_of(loaded, rated)
    return _ids(loaded.users_, "--user", [user or ""])[0]


def person_of(loaded: FactorModel, rated: list[str]) -> Person:
    """Return q of somebody with some ratings or events, as ITEM=RATING."""
    from svmp.recommend import EventModel, RatingModel

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
    assert isinstance(loaded, RatingModel | EventModel)
    return loaded.fold_in(_ids(loaded.items_, "--rated", items), ratings)


def _ids(known: EntityTable, flag: str, texts: list[str]) -> Any:
    """Return ids of the type that a model has; raise if one is not in the model."""
    ids, unknown = known_ids(known, flag, texts)
    if unknown:
        raise ModelError(f"{flag}: there is no {known.what} {unknown[0]!s:.60} in the model")
    return ids
