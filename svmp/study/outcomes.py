"""What a study is made of: its questions, in order, each with a table and, mostly, a chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from svmp.errors import StudyError
from svmp.ratings import parquet
from svmp.ratings.lines import MOST
from svmp.study import answer, claims, figures, thresholds
from svmp.study.bench import Bench
from svmp.study.chart import Chart
from svmp.study.store import Store

QUESTIONS = ("figure2", "figure3", "thresholds", "answer", "claims")


@dataclass(frozen=True)
class Outcome:
    """What came of one question: a tidy table, a summary in JSON's types, and a chart of them."""

    name: str
    table: pl.DataFrame
    about: dict[str, Any]
    chart: Chart | None


def work_out(bench: Bench, name: str) -> Outcome:
    """Answer one question, and write down its numbers."""
    run: dict[str, Callable[[], tuple[pl.DataFrame, dict[str, Any]]]] = {
        "figure2": lambda: figures.run(bench, "figure2"),
        "figure3": lambda: figures.run(bench, "figure3"),
        "thresholds": lambda: thresholds.run(bench),
        "answer": lambda: answer.run(bench),
        "claims": lambda: claims.run(bench),
    }
    table, about = run[name]()
    about = {"settings": bench.settings.to_dict(), "digest": bench.data.digest, **about}
    bench.store.write_table(f"{name}.parquet", table)
    bench.store.write_text(f"{name}.json", json.dumps(about, indent=2) + "\n")
    return outcome(name, table, about)


def outcome(name: str, table: pl.DataFrame, about: dict[str, Any]) -> Outcome:
    """Put a table, its summary and their chart together."""
    chart = None
    if name in ("figure2", "figure3"):
        chart = figures.chart(name, table, about, about["settings"]["kappa"])  # type: ignore[arg-type]
    elif name == "thresholds":
        chart = thresholds.chart(table, about)
    elif name == "answer":
        chart = answer.chart(table, about)
    return Outcome(name, table, about, chart)


def known(store: Store) -> dict[str, Outcome]:
    """Read the questions that the study in a folder has answered, with the settings it has now."""
    made = store.about() or {}
    found = {}
    for name in QUESTIONS:
        path = store.folder / f"{name}.json"
        if path.exists():
            outcome = _read(path, name)
            if all(outcome.about[what] == made.get(what) for what in ("settings", "digest")):
                found[name] = outcome
    return found


def _read(path: Path, name: str) -> Outcome:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        table = parquet.read(path.with_suffix(".parquet"), MOST)
        return outcome(name, table, about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"{path}: damaged, or not written by svmp study ({type(error).__name__}); "
            f"make it anew with: svmp study {name}"
        ) from None
