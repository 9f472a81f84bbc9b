"""Read damaged files, one after another, in a process with limited memory and time.

    python -m tests.fuzz.reader_child FORMS SEED COUNT [MODEL ...]

takes formats of ratings, separated by bars, or models. It prints the number of each file before it
reads it, and every failure: an exception that is not svmp's, or an invalid result. If it crashes,
the last number identifies the file.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from svmp.errors import SvmpError
from svmp.ratings import Ratings, read_ratings
from tests.fuzz import reader_mutants as mutants

MEMORY = 3 << 30
SECONDS = 20


def check_ratings(ratings: Ratings) -> None:
    assert len(ratings) > 0
    for keys, ids in ((ratings.user, ratings.user_ids), (ratings.item, ratings.item_ids)):
        assert keys.dtype == np.int32
        assert len(keys) == len(ratings)
        assert keys.min() >= 0
        assert keys.max() < len(ids)
        assert ids.dtype == np.int64 or ids.dtype.kind == "U"
        assert len(np.unique(ids)) == len(ids)
    assert np.isfinite(ratings.rating).all()
    assert ratings.time is None or np.isfinite(ratings.time).all()


def ratings_of(kinds: str, folder: Path) -> Callable[[np.random.Generator], Any]:
    makers = mutants.makers(folder)

    def work(rng: np.random.Generator) -> None:
        name, make = makers[mutants.one_of(rng, kinds.split("|"))]
        path = folder / name
        path.write_bytes(make(rng))
        options: dict[str, Any] = {}
        if rng.random() < 0.3:
            options["duplicates"] = "mean"
        if rng.random() < 0.1:
            options["events"] = True
        if rng.random() < 0.1:
            options["encoding"] = mutants.one_of(rng, ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
        check_ratings(read_ratings(path, **options))

    return work


def model_of(folder: Path, saved: tuple[str, ...]) -> Callable[[np.random.Generator], Any]:
    from svmp.recommend import load

    def work(rng: np.random.Generator) -> None:
        path = mutants.copied(Path(mutants.one_of(rng, saved)), folder / "m.svmp")
        mutants.change_model(path, rng)
        model = load(path, mapped=bool(rng.integers(2)))
        users, items = model.users_.ids, model.items_.ids
        found: list[Any] = [*model.predict(users[:5], items[:5], return_std=True)]
        found += model.predict_interval(users[:5], items[:5])
        for explore in (None, "ucb", "thompson"):
            top = model.recommend(users[:5], 3, explore=explore, exclude_seen=False, seed=1)
            found += top[1:]
        found += model.similar_items(items[0], 3)[1:]
        found += model.similar_users(users[0], 3)[1:]
        person = model.fold_in(items[:2], [1, 2] if hasattr(model, "range_") else None)
        found += model.recommend(person, 3)[1:]
        found += model.predict(person, items[:3], return_std=True)
        why = model.explain(person, items[0])
        found += [why.prediction, why.parts]
        if rng.random() < 0.1:
            model.update(([users[0]], [items[0]], [2.0]))
            found += model.predict(users[:5], items[:5], return_std=True)
        assert all(np.isfinite(x).all() for x in found), "not finite"

    return work


def main(forms: str, seed: int, count: int, *saved: str) -> None:
    warnings.simplefilter("ignore")
    faults = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        work = model_of(folder, saved) if saved else ratings_of(forms, folder)
        resource.setrlimit(resource.RLIMIT_AS, (_used() + MEMORY,) * 2)
        read = 0
        for number in range(count):
            print(number, flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                work(np.random.default_rng([seed, number]))
                read += 1
            except SvmpError as error:
                if "\n" in str(error) or len(str(error)) > 1000:
                    faults.append({"number": number, "error": f"not one sentence: {error!r:.1500}"})
            except BaseException:
                faults.append({"number": number, "error": traceback.format_exc()[-3000:]})
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"read": read, "faults": faults}))


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
