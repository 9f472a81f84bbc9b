"""The model in use, and its replacement while the service runs.

The files of the model and of its items are checked for changes once a second. A new model is loaded
and checked while the old one still answers, and then takes its place by the assignment of one
reference. A model that cannot be loaded, or does not answer, is refused with a reason, and the old
one stays. Arrays are read into memory, so that changes of the files do not affect a model in use.
"""

from __future__ import annotations

import asyncio
import logging
import math
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from svmp.errors import FileError, SvmpError
from svmp.recommend.files import ABOUT, folder_of
from svmp.recommend.item_table import ItemTable
from svmp.recommend.loading import load
from svmp.recommend.service.answers import ServedModel
from svmp.recommend.service.bodies import Explain, FoldIn, Predict, Rated, Recommend, Similar
from svmp.recommend.service.catalogue import read_titles
from svmp.recommend.service.metrics import Metrics
from svmp.writing import drafts_of

LOG = logging.getLogger("svmp.serve")
PAUSE = 1.0
"""Seconds between checks of the files."""
Signature = tuple[tuple[str, int, int, int], ...]


class CurrentModel:
    """Holds the model in use, and replaces it when its files change."""

    def __init__(
        self,
        path: Path,
        titles: Path | None,
        name: str,
        batch: int,
        metrics: Metrics,
        encoding: str = "utf-8",
        items: Path | None = None,
    ) -> None:
        self.path, self.titles, self.name, self.encoding = path, titles, name, encoding
        self.items = items
        self.batch, self.metrics = batch, metrics
        self.swaps = 0
        self.refused: str | None = None
        self._seen = signature(path, items)
        self.served = self._load()
        metrics.loaded(self.served.about)

    def look(self) -> None:
        """Load the model at the path, if it is new and valid."""
        now = signature(self.path, self.items)
        if now == self._seen or not now:
            return  # while a folder is replaced, it may not exist for a moment
        try:
            served = self._load()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            if signature(self.path, self.items) != now:
                return  # it is still being written: try again at the next check
            self._seen = now
            self._refuse(error)
            return
        if signature(self.path, self.items) != now:
            return
        self._seen, self.refused = now, None
        self.served = served
        self.swaps += 1
        self.metrics.swapped.inc()
        self.metrics.loaded(served.about)
        LOG.info("loaded a new model: %(users)s users, %(items)s items", served.about)

    async def watch(self, worker: Executor) -> None:
        """Check the files periodically, forever, whatever a check raises."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PAUSE)
            try:
                await loop.run_in_executor(worker, self.look)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a panic of a Rust library is not an Exception
                self._refuse(error)

    def _refuse(self, error: BaseException) -> None:
        """Log why a new model is not loaded."""
        self.refused = str(error) if isinstance(error, SvmpError) else repr(error)[:300]
        self.metrics.refused.inc()
        LOG.warning("the new model is refused, the old one stays in use: %s", self.refused)

    def _load(self) -> ServedModel:
        model = load(self.path, mapped=False)
        titles = None if self.titles is None else read_titles(self.titles, model, self.encoding)
        items = None if self.items is None else ItemTable(self.items, encoding=self.encoding)
        served = ServedModel(model, titles, self.name, self.batch, items)
        check(served)
        return served


def signature(path: Path, items: Path | None = None) -> Signature:
    """Return names, inodes, sizes and times of the files of a model, which change with it.

    Those of a version that is still being written do not count.
    """
    try:
        files = {*path.iterdir(), *folder_of(path).iterdir()} - {*drafts_of(path / ABOUT)}
        files |= set() if items is None else {items}
        facts = [(str(file), file.stat()) for file in sorted(files) if not file.is_dir()]
    except OSError:
        return ()
    return tuple((name, fact.st_ino, fact.st_size, fact.st_mtime_ns) for name, fact in facts)


def check(served: ServedModel) -> None:
    """Raise unless a model answers with finite numbers; this also warms up caches."""
    users, items = (known.ids[:1].tolist() for known in (served.model.users_, served.model.items_))
    if not users or not items:
        raise FileError("the model has no users, or no items")
    low = served.about["range"][0] if served.about["range"] else 1.0
    history = [Rated(item=items[0], rating=low)]
    answers: list[Any] = [
        served.recommend(Recommend(users=users, level=0.9)),
        served.fold_in(FoldIn(history=history, level=0.9)),
        served.predict(Predict(users=users, items=items, level=0.9)),
        served.similar(Similar(item=items[0])),
        served.similar(Similar(user=users[0])),
        served.explain(Explain(history=history, items=items)),
    ]
    if not np.isfinite(list(numbers(answers))).all():
        raise FileError("the model answers with numbers that are not finite")


def numbers(value: Any) -> Any:
    """Yield every number in a response."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value if math.isfinite(value) else np.nan
