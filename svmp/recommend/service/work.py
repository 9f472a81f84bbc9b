"""Where a response is computed: immediately, or, if it is expensive, in a separate thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any

from svmp.recommend.events import EventModel
from svmp.recommend.service import bodies
from svmp.recommend.service.answers import Answer, ServedModel

QUICK = 100_000
"""Responses of at most this cost are computed immediately; the unit is one score."""
WAITING = 100
"""Maximum number of requests that wait for the thread."""
RANKING = {None: 1, "ucb": 3, "thompson": 50}
"""Cost of ranking an item, by exploration."""
RATING, REASON = 100, 50_000
"""Cost of folding in a rating, and of an explanation."""


class QueueFull(Exception):
    """Too many requests are waiting."""


class ComputeThread:
    """One thread for all expensive requests, as parallel compiled loops must not run at once."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "svmp")
        self._room = Semaphore(WAITING)
        self._begun: float | None = None
        self._closed = False

    async def answer(
        self, work: Callable[[Any, Any], Answer], served: ServedModel, asked: Any
    ) -> Answer:
        """Return the response of a model."""
        if scores(served, asked) <= QUICK:
            return work(served, asked)
        if not self._room.acquire(blocking=False):
            raise QueueFull
        job = self.thread.submit(self._run, work, served, asked)
        job.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(job)

    def _run(self, work: Callable[[Any, Any], Answer], served: ServedModel, asked: Any) -> Answer:
        self._begun = time.monotonic()
        try:
            return work(served, asked)
        finally:
            self._begun = None

    def unready(self, seconds: float) -> str | None:
        """Return why more requests should go elsewhere, if so; one may take some seconds."""
        begun = self._begun
        if self._closed:
            return "the service is ending"
        if begun is not None and time.monotonic() - begun > seconds:
            return f"a request has been computed for more than {seconds:g} seconds"
        if not self._room.acquire(blocking=False):
            return "too many requests are waiting"
        self._room.release()
        return None

    def close(self) -> None:
        """Cancel all requests that wait."""
        self._closed = True
        self.thread.shutdown(wait=False, cancel_futures=True)


def scores(served: ServedModel, asked: Any) -> float:
    """Return the cost of a response, in scores; infinite if its loops use several threads."""
    with_history = isinstance(asked, bodies.FoldIn | bodies.Predict | bodies.Explain)
    items, history = len(served.catalogue), asked.history if with_history else None
    own = RATING * len(history or ())
    if isinstance(served.model, EventModel) and (history or isinstance(asked, bodies.Explain)):
        return math.inf  # negatives are drawn
    if isinstance(asked, bodies.Recommend) and len(asked.users) != 1:
        return math.inf
    if isinstance(asked, bodies.Ranking):
        picks = asked.n if asked.quota or asked.diversity else 0  # a pass over the items for each
        return own + items * (RANKING[asked.explore] + picks)
    if isinstance(asked, bodies.Explain):
        return REASON * len(asked.items)
    if isinstance(asked, bodies.Predict):
        return own + len(asked.items)
    among_users = isinstance(asked, bodies.Similar) and asked.item is None
    return len(served.model.users_) if among_users else items
