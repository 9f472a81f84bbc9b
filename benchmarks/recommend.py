"""Recommenders against other programs: held-out ratings, events, and the speed of answers.

    python benchmarks/recommend.py                          # all of it: hours
    python benchmarks/recommend.py speed                    # a part: ratings, events or speed
    python benchmarks/recommend.py ratings --data goodbooks --factors 5 --seeds 0 --models svmp
    python benchmarks/recommend.py --quick                  # small sizes, to check that it runs

Data are given by name, or as the path of a file of ratings. Every run is written to
results/recommend_*.json as soon as it ends, and replaces an earlier run with the same key. A peer
that cannot be installed or run is reported. The tables of docs/performance.md are made from all
runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import recommend_events
import recommend_ratings
import recommend_speed
import table
from common import describe
from recommend_data import NAMES, Settings
from runs import Runs

PARTS: dict[str, Any] = {
    "ratings": recommend_ratings,
    "events": recommend_events,
    "speed": recommend_speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; by default all")
    parser.add_argument("--data", nargs="+", default=NAMES, help="names, or files of ratings")
    parser.add_argument("--factors", nargs="+", type=int, default=(5, 32))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--models", nargs="+", help="some of the models; by default all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs")
    given = vars(parser.parse_args())
    parts = given.pop("parts") or list(PARTS)
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    settings = Settings(**given)
    for name in parts:
        part = PARTS[name]
        runs = Runs(f"recommend_{name}", part.__doc__, settings.quick)
        measure: Callable[[Settings], Iterator[tuple[Any, Any]]] = part.measure
        for key, found in measure(settings):
            runs.add(key, found)
            runs.write(part.rows(runs), part.grids(runs))
        print("\n".join(map(describe, runs.rows)), flush=True)
    if not settings.quick:
        table.main()


if __name__ == "__main__":
    main()
