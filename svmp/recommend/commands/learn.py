"""Commands that fit or update a model: `fit`, `evaluate` and `update`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svmp import interrupts
from svmp.errors import ModelError, RatingsError
from svmp.interrupts import if_interrupted
from svmp.recommend.commands.options import (
    WAIT,
    AtLeast,
    Calibrate,
    Count,
    Counts,
    Covariance,
    Encoding,
    Events,
    Factors,
    File,
    FileOptions,
    Folder,
    Iterations,
    Json,
    MaxSweeps,
    Names,
    Noise,
    Power,
    Range,
    Ratio,
    Rule,
    Score,
    Seed,
    TextIds,
    Threads,
    Tol,
    Unpacked,
    Wait,
    columns_of,
    range_of,
)
from svmp.recommend.commands.output import formatted, print_rows

if TYPE_CHECKING:
    from svmp.ratings import Ratings
    from svmp.recommend.events import EventModel
    from svmp.recommend.rating import RatingModel

SPLITS = ("random", "time", "last", "users", "items")


def fit(
    ratings: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write the model to.")],
    factors: Factors = 32,
    events: Events = False,
    at_least: AtLeast = None,
    counts: Counts = False,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    text_ids: TextIds = "",
    covariance: Covariance = None,
    noise: Noise = None,
    range: Range = "",
    calibrate: Calibrate = None,
    tol: Tol = None,
    max_sweeps: MaxSweeps = None,
    ratio: Ratio = None,
    power: Power = None,
    score: Score = None,
    iterations: Iterations = None,
    seed: Seed = 0,
    threads: Threads = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory to use, as 4GB, for ratings in Parquet parts: see partition."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Dask scheduler, as tcp://host:8786, on whose workers parts are fitted."),
    ] = None,
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """Fit a model to a file of ratings, or of events; or to ratings in parts.

    Parts are Parquet files, each with all ratings of its users: a folder or a quoted pattern, as
    "data/*.parquet". They need not fit into memory.
    """
    from svmp.recommend.commands.in_parts import fit_parts, is_in_parts
    from svmp.recommend.files import check_place
    from svmp.recommend.rating import RatingModel

    check_place(out)
    of_all = {"factors": factors, "columns": columns_of(columns), "seed": seed, "threads": threads}
    of_ratings: dict[str, Any] = {
        "covariance": covariance,
        "noise": noise,
        "range": range_of(range),
    }
    of_ratings |= {"calibrate": calibrate, "tol": tol, "max_sweeps": max_sweeps}
    of_events: dict[str, Any] = {
        "at_least": at_least,
        "counts": counts or None,
        "ratio": ratio,
        "power": power,
    }
    of_events |= {"score": score, "iterations": iterations}
    model = _model(events, of_all, of_ratings, of_events, duplicates)
    options = FileOptions(encoding, max_unpacked, text_ids)
    in_parts = memory is not None or scheduler is not None or is_in_parts(ratings)
    if in_parts and events:
        raise ModelError("--events cannot be used with ratings in parts, --memory or --scheduler")
    with if_interrupted("there is no model yet, and nothing is saved"):
        if in_parts and isinstance(model, RatingModel):
            fit_parts(model, ratings, options, memory, scheduler)
        else:
            model.fit(_read(model, ratings, options))
    with if_interrupted("the model was not saved"):
        model.save(out, wait=wait)
    about: dict[str, Any] = {
        "model": str(out),
        "events" if events else "ratings": len(model.history_.item),
        "users": len(model.users_),
        "items": len(model.items_),
    }
    if isinstance(model, RatingModel):
        about |= {"sweeps": model.sweeps_, "noise": model.prior_noise_**0.5}
        about |= {"factors": model.users_.side.factors}  # 0 if they do not improve predictions
        about |= {"ended": model.status_}
    if as_json:
        print(json.dumps(about | ({"interrupted": True} if model.interrupted_ else {})))
    else:
        print_rows([{"": name, "value": formatted(value)} for name, value in about.items()], False)
    _exit_if_interrupted(model, "the saved model is what was learned until then")


def evaluate(
    ratings: File,
    factors: Factors = 32,
    split: Annotated[
        str, typer.Option(help="What to hold out: random, time, last, users or items.")
    ] = "random",
    share: Annotated[float, typer.Option(help="Share to hold out.")] = 0.1,
    n: Count = 10,
    events: Events = False,
    at_least: AtLeast = None,
    counts: Counts = False,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    text_ids: TextIds = "",
    covariance: Covariance = None,
    noise: Noise = None,
    range: Range = "",
    calibrate: Calibrate = None,
    tol: Tol = None,
    max_sweeps: MaxSweeps = None,
    ratio: Ratio = None,
    power: Power = None,
    score: Score = None,
    iterations: Iterations = None,
    seed: Seed = 0,
    threads: Threads = None,
    plot: Annotated[Path | None, typer.Option(help="File to draw the figures into.")] = None,
    as_json: Json = False,
) -> None:
    """Fit to a part of a file, and score predictions and rankings on the rest."""
    from svmp.recommend import split as splits
    from svmp.recommend.evaluation import evaluate as evaluated
    from svmp.writing import check_picture, written_beside

    if plot is not None:
        check_picture(plot)
    of_all = {"factors": factors, "columns": columns_of(columns), "seed": seed, "threads": threads}
    of_ratings: dict[str, Any] = {
        "covariance": covariance,
        "noise": noise,
        "range": range_of(range),
    }
    of_ratings |= {"calibrate": calibrate, "tol": tol, "max_sweeps": max_sweeps}
    of_events: dict[str, Any] = {
        "at_least": at_least,
        "counts": counts or None,
        "ratio": ratio,
        "power": power,
    }
    of_events |= {"score": score, "iterations": iterations}
    model = _model(events, of_all, of_ratings, of_events, duplicates)
    if split not in SPLITS:
        raise ModelError(f"--split must be one of {', '.join(SPLITS)}, not {split!r:.60}")
    table = _read(model, ratings, FileOptions(encoding, max_unpacked, text_ids))
    ways: dict[str, Any] = {
        "random": lambda: splits.random(table, share, seed),
        "time": lambda: splits.by_time(table, share),
        "last": lambda: splits.last_out(table),
        "users": lambda: splits.cold_users(table, share, seed),
        "items": lambda: splits.cold_items(table, share, seed),
    }
    train, test = ways[split]()
    found = evaluated(model.fit(train), test, n=n, seed=seed)
    if plot is not None:
        with written_beside(plot) as draft:
            found.plot()[0].figure.savefig(draft, dpi=120)
    print(json.dumps(found.to_dict(), indent=1) if as_json else found)
    _exit_if_interrupted(model, "the scores are those of the model that was learned until then")


def update(
    model: Folder,
    ratings: File,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder to write to; by default MODEL is replaced."),
    ] = None,
    columns: Names = "",
    duplicates: Rule = "",
    encoding: Encoding = "utf-8",
    max_unpacked: Unpacked = None,
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """Update a model with more ratings or events, without a new fit.

    Updates of the same model wait for each other.
    """
    from svmp.recommend import EventModel, load
    from svmp.recommend.files import check_place, lock

    target = check_place(out or model)
    with if_interrupted(f"{target} is unchanged"), lock(target, wait):
        found = load(model)
        found.set_params(columns=columns_of(columns))
        if duplicates:
            found.set_params(duplicates=duplicates)
        found._check_parameters()
        table = _read(found, ratings, FileOptions(encoding, max_unpacked))
        before = len(found.history_.item), len(found.users_), len(found.items_)
        try:
            found.update(table)
        except RatingsError as error:
            raise RatingsError(f"{ratings}: {error}") from None
        found.save(target, wait=wait)
    after = len(found.history_.item), len(found.users_), len(found.items_)
    names = ("events" if isinstance(found, EventModel) else "ratings", "users", "items")
    both = dict(zip(names, zip(before, after, strict=True), strict=True))
    if as_json:
        print(json.dumps({name: now for name, (_, now) in both.items()}))
    else:
        rows = [{"": name, "before": was, "after": now} for name, (was, now) in both.items()]
        print_rows(rows, False)


def _exit_if_interrupted(model: RatingModel | EventModel, what: str) -> None:
    """If Ctrl-C or SIGTERM ended the fit, print what has become of it and exit with its code."""
    if model.interrupted_:
        interrupts.say(what)
        raise typer.Exit(interrupts.exit_code())


def _read(model: RatingModel | EventModel, path: Path, options: FileOptions) -> Ratings:
    """Read the table in a file as the model reads it, with the options of the command."""
    from svmp.ratings.lines import MOST
    from svmp.ratings.read import read_ratings
    from svmp.recommend.events import EventModel

    model._check_parameters()
    table = read_ratings(
        path,
        columns=model.columns,
        duplicates=model.duplicates,
        encoding=options.encoding,
        events=isinstance(model, EventModel),
        range=None if isinstance(model, EventModel) else model.range,
        max_unpacked=options.max_unpacked or MOST,
        text_ids=model._text_ids(path) + [part for part in options.text_ids.split(",") if part],
    )
    return model.read(table)


def _model(
    events: bool,
    of_all: dict[str, Any],
    of_ratings: dict[str, Any],
    of_events: dict[str, Any],
    duplicates: str,
) -> RatingModel | EventModel:
    """Return a model of ratings or of events; parameters that are not given have defaults."""
    from svmp.recommend import EventModel, RatingModel

    of_ratings, of_events = (
        {name: value for name, value in given.items() if value is not None}
        for given in (of_ratings, of_events)
    )
    if not events and of_events:
        raise ModelError(
            "--ratio, --power, --score, --iterations, --at-least and --counts need --events"
        )
    if events and of_ratings:
        raise ModelError(
            "--covariance, --range, --calibrate, --tol, --noise and --max-sweeps cannot be used "
            "with --events"
        )
    more: dict[str, Any] = {"duplicates": duplicates} if duplicates else {}
    if events:
        return EventModel(**of_all, **of_events, **more)
    return RatingModel(**of_all, **of_ratings, **more)
