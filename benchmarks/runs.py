"""Runs of a benchmark, written as they end, and the results made from them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from statistics import mean
from typing import Any

from common import QUICK, RESULTS, Row, machine


class Runs:
    """The runs of one benchmark, including earlier ones.

    Each has a key, such as data, factors, seed and model, and its results or the reason why there
    are none.
    """

    def __init__(self, name: str, doc: str | None, quick: bool) -> None:
        folder = QUICK if quick else RESULTS
        folder.mkdir(exist_ok=True)
        self.path, self.title = folder / f"{name}.json", (doc or "").splitlines()[0]
        before = json.loads(self.path.read_text())["runs"] if self.path.exists() else []
        self.rows: list[Row] = []
        self.runs = {} if quick else {_text(run["key"]): run for run in before}

    def add(self, key: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Add a run, which replaces an earlier one with the same key."""
        shown = ", ".join(f"{k} {_short(v)}" for k, v in found.items())
        print(f"{', '.join(map(str, key.values()))}: {shown}", flush=True)
        about = {"key": dict(key), "found": dict(found), "load": machine()["load"]}
        self.runs[_text(key)] = {**about, "date": time.strftime("%Y-%m-%d")}

    def of(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the results of the successful runs whose keys have these values."""
        return [
            {**run["key"], **run["found"], "load": run["load"]}
            for run in self.runs.values()
            if "failed" not in run["found"]
            and all(run["key"].get(name) == value for name, value in wanted.items())
        ]

    def names(self, key: str) -> list[Any]:
        """Return the distinct values of a key, in the order of the runs."""
        return list(dict.fromkeys(run["key"][key] for run in self.runs.values()))

    def failures(self) -> list[str]:
        """Return the models that did not run, with the reasons."""
        failed = (run for run in self.runs.values() if "failed" in run["found"])
        words = (f"{run['key']['model']}: {run['found']['failed']}" for run in failed)
        return list(dict.fromkeys(words))

    def write(self, rows: Iterable[Row], grids: Iterable[Mapping[str, Any]]) -> None:
        """Write the result."""
        self.rows = list(rows)
        made = [{**asdict(row), "ratio": row.ratio} for row in self.rows]
        result = {
            "title": self.title,
            "machine": machine(),
            "grids": list(grids),
            "rows": made,
            "notes": self.failures(),
            "runs": list(self.runs.values()),
        }
        self.path.write_text(json.dumps(result, indent=1) + "\n")


def average(found: list[dict[str, Any]], what: str) -> float:
    """Return the mean of a figure over runs."""
    return mean(run[what] for run in found)


def cases(runs: Runs) -> list[tuple[str, int]]:
    """Return all data with all numbers of factors."""
    return [(name, k) for name in runs.names("data") for k in sorted(runs.names("factors"))]


def grid(runs: Runs, what: str, title: str, without: str = "") -> dict[str, Any]:
    """Return a figure and the seconds of every model, by data and factors, averaged over seeds."""
    lines = []
    for model in (m for m in runs.names("model") if m != without):
        every = [runs.of(data=name, factors=k, model=model) for name, k in cases(runs)]
        cells = [
            f"{average(some, what):.4f} ({average(some, 'seconds'):.3g} s)" if some else ""
            for some in every
        ]
        lines.append([model, *cells])
    heads = ["", *(f"{name}, K = {k}" for name, k in cases(runs))]
    splits = len(runs.names("seed"))
    words = f"{title}, and seconds of the fit; means over up to {splits} splits"
    return {"title": words, "heads": heads, "rows": lines}


def _text(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(sorted(key.items())))


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{len(value)} values" if isinstance(value, list | dict) and len(value) > 9 else value
