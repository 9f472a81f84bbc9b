"""`svmp recommend`: from a file of ratings to recommendations, on the command line."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp import interrupts
from svmp.errors import ModelError, RatingsError, naming, needing
from svmp.interrupts import if_interrupted
from svmp.recommend.options import Encoding, Names, Rule, Seed, TextIds, Unpacked, columns_of

if TYPE_CHECKING:
    from svmp.recommend.events import EventModel
    from svmp.recommend.rating import RatingModel
    from svmp.recommend.side import EntityTable

recommend = typer.Typer(
    help="Recommendations from a file of ratings, with honest uncertainty.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

File = Annotated[Path, typer.Argument(metavar="RATINGS", help="A file of ratings.")]
Folder = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that was saved.")]
Events = Annotated[
    bool, typer.Option("--events", help="What users took (clicks, plays) instead of ratings.")
]
AtLeast = Annotated[
    float | None, typer.Option(help="Of events: the least rating that is one; by default above 0.")
]
Counts = Annotated[
    bool, typer.Option("--counts", help="Of events: a rating is how often one happened.")
]
WAYS = ("random", "time", "last", "users", "items")
WHOLE = r"0|-?[1-9][0-9]*"
LARGEST = 2**63 - 1
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Count = Annotated[int, typer.Option("-n", min=1, help="How many.")]


@recommend.command()
def fit(
    ratings: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write the model to.")],
    factors: Annotated[int, typer.Option(min=0, help="Factors of a user and of an item.")] = 32,
    events: Events = False,
    at_least: AtLeast = None,
    counts: Counts = False,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    text_ids: TextIds = "",
    covariance: Annotated[
        str | None, typer.Option(help="Of ratings: q of the factors is diagonal (default) or full.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Of ratings: noise by user (default), or shared.")
    ] = None,
    seed: Seed = 0,
    max_sweeps: Annotated[
        float | None, typer.Option(min=1, help="Of ratings: sweeps at most; by default 150.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: Json = False,
) -> None:
    """Learn from a file of ratings, or of events."""
    from svmp.recommend.files import check_place
    from svmp.recommend.rating import RatingModel

    check_place(out)
    of_ratings = {"covariance": covariance, "noise": noise, "max_sweeps": max_sweeps}
    of_events = {"at_least": at_least, "counts": counts}
    model = _model(
        events,
        {"factors": factors, "columns": columns_of(columns), "seed": seed, "threads": threads},
        of_ratings,
        of_events,
        duplicates,
    )
    with if_interrupted("there is no model yet, and nothing is saved"):
        model.fit(_table_of(model, ratings, encoding, max_unpacked, text_ids))
    with if_interrupted("the model was not saved"):
        model.save(out)
    about: dict[str, Any] = {
        "model": str(out),
        "events" if events else "ratings": len(model.history_.item),
        "users": len(model.users_),
        "items": len(model.items_),
    }
    if isinstance(model, RatingModel):
        about |= {"sweeps": model.sweeps_, "noise": model.prior_noise_**0.5}
        about |= {"factors": model.users_.side.factors}  # fewer than asked for if they gain nothing
    if as_json:
        print(json.dumps(about | ({"interrupted": True} if model.interrupted_ else {})))
    else:
        _table([{"": name, "value": _shown(value)} for name, value in about.items()], False)
    _end(model, "the model that is saved is of what was learned by then")


@recommend.command()
def evaluate(
    ratings: File,
    factors: Annotated[int, typer.Option(min=0, help="Factors of a user and of an item.")] = 32,
    split: Annotated[
        str, typer.Option(help="What is left out: random, time, last, users or items.")
    ] = "random",
    share: Annotated[float, typer.Option(help="How much of it is left out.")] = 0.1,
    n: Count = 10,
    events: Events = False,
    at_least: AtLeast = None,
    counts: Counts = False,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    text_ids: TextIds = "",
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the figures into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Fit to a part of a file, and score predictions and rankings on the rest."""
    from svmp.recommend import split as splits
    from svmp.recommend.evaluate import evaluate as score
    from svmp.writing import check_picture, written_beside

    if plot is not None:
        check_picture(plot)
    of_all = {"factors": factors, "columns": columns_of(columns), "seed": seed}
    of_events = {"at_least": at_least, "counts": counts}
    model = _model(events, of_all, {}, of_events, duplicates)
    if split not in WAYS:
        raise ModelError(f"--split must be one of {', '.join(WAYS)}, not {split!r:.60}")
    table = _table_of(model, ratings, encoding, max_unpacked, text_ids)
    ways: dict[str, Any] = {
        "random": lambda: splits.random(table, share, seed),
        "time": lambda: splits.by_time(table, share),
        "last": lambda: splits.last_out(table),
        "users": lambda: splits.cold_users(table, share, seed),
        "items": lambda: splits.cold_items(table, share, seed),
    }
    train, test = ways[split]()
    found = score(model.fit(train), test, n=n, seed=seed)
    if plot is not None:
        with written_beside(plot) as draft:
            found.plot().savefig(draft, dpi=120)
    print(json.dumps(found.to_dict(), indent=1) if as_json else found)
    _end(model, "the scores are those of what was learned by then")


@recommend.command()
def top(
    model: Folder,
    user: Annotated[list[str], typer.Option(help="A user's id; may be given again.")],
    n: Count = 10,
    explore: Annotated[str | None, typer.Option(help="thompson or ucb.")] = None,
    width: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1000,
            help="Standard deviations that --explore counts: 1, or 0.5 for thompson on events.",
        ),
    ] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Also what the user has rated.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same draws each time; by default they are new.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend items to users."""
    if explore not in (None, "thompson", "ucb"):
        raise ModelError(f"--explore must be thompson or ucb, not {explore!r:.60}")
    found = _load(model)
    users = _ids(found.users_, "--user", user)
    best = found.recommend(
        users,
        n,
        exclude_seen=not seen,
        explore=explore,  # type: ignore[arg-type]
        width=width,
        seed=seed,
    )
    rows = [
        {"user": _plain(one), **row}
        for place, one in enumerate(users)
        for row in _rows(best.items[place], best.scores[place], best.stds[place])
    ]
    _table(rows, as_json)


@recommend.command()
def similar(
    model: Folder,
    item: Annotated[str | None, typer.Option(help="An item's id.")] = None,
    user: Annotated[str | None, typer.Option(help="Or a user's.")] = None,
    n: Count = 10,
    as_json: Json = False,
) -> None:
    """List what is most like an item, or who is most like a user."""
    if (item is None) == (user is None):
        raise ModelError("give an --item or a --user, one of the two")
    found = _load(model)
    if item is not None:
        best = found.similar_items(_ids(found.items_, "--item", [item])[0], n)
    else:
        best = found.similar_users(_ids(found.users_, "--user", [user or ""])[0], n)
    what = "item" if item is not None else "user"
    if found.users_.side.factors == 0:
        typer.echo(
            f"svmp: {model} has no factors, so no {what} is more like it than others", err=True
        )
    _table(list(_rows(*best, what=what, score="similarity")), as_json)


@recommend.command(name="fold-in")
def fold_in(
    model: Folder,
    rated: Annotated[
        list[str],
        typer.Option(metavar="ITEM=RATING", help="Again and again; of events ITEM or ITEM=COUNT."),
    ],
    n: Count = 10,
    as_json: Json = False,
) -> None:
    """Recommend to somebody who is not in the model, by a few ratings or events of theirs."""
    from svmp.recommend import EventModel, RatingModel

    found = _load(model)
    items, ratings = [], []
    for text in rated:
        pair = text if "=" in text or isinstance(found, RatingModel) else f"{text}=1"
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
    if isinstance(found, EventModel) and not all(0 < n <= 1e6 for n in ratings):
        raise ModelError("--rated must be ITEM or ITEM=COUNT, with counts from 1 to a million")
    if isinstance(found, RatingModel):
        low, high = found.range_
        if not all(low <= rating <= high for rating in ratings):
            raise ModelError(f"--rated must have ratings from {low:g} to {high:g}")
    person = found.fold_in(_ids(found.items_, "--rated", items), ratings)
    _table(list(_rows(*found.recommend(person, n))), as_json)


@recommend.command()
def update(
    model: Folder,
    ratings: File,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where to; by default in its place.")
    ] = None,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    as_json: Json = False,
) -> None:
    """Take in more ratings or events, without fitting anew."""
    from svmp.recommend.events import EventModel
    from svmp.recommend.files import check_place

    check_place(out or model)
    found = _load(model)
    found.set_params(columns=columns_of(columns))
    if duplicates:
        found.set_params(duplicates=duplicates)
    found._check_parameters()
    table = _table_of(found, ratings, encoding, max_unpacked)
    before = len(found.history_.item), len(found.users_), len(found.items_)
    with if_interrupted(f"{model} is as it was"):
        try:
            found.update(table)
        except RatingsError as error:
            raise RatingsError(f"{ratings}: {error}") from None
        found.save(out or model)
    after = len(found.history_.item), len(found.users_), len(found.items_)
    names = ("events" if isinstance(found, EventModel) else "ratings", "users", "items")
    both = dict(zip(names, zip(before, after, strict=True), strict=True))
    if as_json:
        print(json.dumps({name: now for name, (_, now) in both.items()}))
    else:
        rows = [{"": name, "before": was, "after": now} for name, (was, now) in both.items()]
        _table(rows, False)


@recommend.command()
def serve(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A model that was saved.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Films that do not exist.")] = False,
    titles: Annotated[Path | None, typer.Option(help="A CSV file: ids, and titles.")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the titles, as latin-1.")] = "utf-8",
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; by default 8015, or any if that is taken."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="SVMP_TOKEN", help="Answer only who sends this token.")
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 1_000_000,
    max_batch: Annotated[int, typer.Option(min=1, help="Users or items of a request.")] = 1_000,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds for a request.")] = 10.0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that answer; by default one a core, four at most."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Serve a model, and a page to try it on; without one, the demo."""
    if demo and model is not None:
        raise ModelError("give a model, or --demo, one of the two")
    service = needing("serve", "svmp.recommend.service.serve")
    limits = service.Limits(max_body, max_batch, timeout)
    with naming(flags=False):  # who asks the service knows nothing of them
        service.serve(model, titles, host, port, token, limits, browser, workers, encoding)


def _end(model: RatingModel | EventModel, what: str) -> None:
    """Say so, and end with its exit code, if Ctrl-C ended a fit."""
    if model.interrupted_:
        interrupts.say(what)
        raise typer.Exit(interrupts.STOPPED)


def _load(path: Path) -> RatingModel | EventModel:
    from svmp.recommend import load

    return load(path)


def _table_of(model: Any, path: Path, encoding: str, most: int | None, text_ids: str = "") -> Any:
    """Return the table in a file, read as a model reads it and with what the flags say."""
    from svmp.ratings.lines import MOST
    from svmp.ratings.read import read_ratings
    from svmp.recommend.events import EventModel

    model._check_parameters()
    table = read_ratings(
        path,
        columns=model.columns,
        duplicates=model.duplicates,
        encoding=encoding,
        events=isinstance(model, EventModel),
        max_unpacked=most or MOST,
        text_ids=model._text_ids(path) + [part for part in text_ids.split(",") if part],
    )
    return model.read(table)


def _model(
    events: bool,
    of_all: dict[str, Any],
    of_ratings: dict[str, Any],
    of_events: dict[str, Any],
    duplicates: str,
) -> RatingModel | EventModel:
    """Return a model of ratings or of events; what is not said is left as it is by default."""
    from svmp.recommend import EventModel, RatingModel

    of_ratings = {name: value for name, value in of_ratings.items() if value is not None}
    if not events and any(value not in (None, False) for value in of_events.values()):
        raise ModelError("--at-least and --counts need --events")
    if events and of_ratings:
        raise ModelError("--covariance, --noise and --max-sweeps are of ratings, not of --events")
    more: dict[str, Any] = {"duplicates": duplicates} if duplicates else {}
    if events:
        return EventModel(**of_all, **of_events, **more)
    return RatingModel(**of_all, **of_ratings, **more)


def _ids(known: EntityTable, flag: str, texts: list[str]) -> Any:
    """Return ids of the kind that a model has, all of which it knows."""
    ids: list[Any] = list(texts)
    if known.ids.dtype.kind != "U":
        for place, text in enumerate(texts):
            if not re.fullmatch(WHOLE, text):
                raise ModelError(
                    f"{flag}: the ids of this model are whole numbers, not {text!r:.60}"
                )
            ids[place] = int(text)
    for one in ids:
        large = isinstance(one, int) and abs(one) > LARGEST
        if large or known.keys(one, "prior")[0] < 0:
            raise ModelError(f"{flag}: there is no {known.what} {one!s:.60} in the model")
    return ids


def _rows(items: Any, scores: Any, stds: Any, what: str = "item", score: str = "score") -> Any:
    for item, value, std in zip(items, scores, stds, strict=True):
        if value == value:
            yield {what: _plain(item), score: round(float(value), 4), "std": round(float(std), 4)}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}" if value % 1 else f"{value:,.0f}"


def _table(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows for people or for programs."""
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
