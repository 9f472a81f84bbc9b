"""Where an answer is computed: at once, or, if it takes long, in a thread for which others wait."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any

from svmp.recommend.events import EventModel
from svmp.recommend.service import bodies
from svmp.recommend.service.answers import Answer, ServedModel

QUICK = 100_000
"""Answers of so many scores are computed at once."""
WAITING = 100
"""Requests that may wait for the thread."""
RANKING = {None: 1, "ucb": 3, "thompson": 50}
"""How many scores it takes to rank an item."""
RATING, REASON = 100, 50_000
"""Scores in the time of which a rating is taken in, or an item explained."""


class QueueFull(Exception):
    """Too much is waiting already."""


class ComputeThread:
    """One thread for all that takes long, as compiled loops on several threads must not meet."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "svmp")
        self._room = Semaphore(WAITING)

    async def answer(
        self, work: Callable[[Any, Any], Answer], served: ServedModel, asked: Any
    ) -> Answer:
        """Return what a model answers."""
        if scores(served, asked) <= QUICK:
            return work(served, asked)
        if not self._room.acquire(blocking=False):
            raise QueueFull
        job = self.thread.submit(work, served, asked)
        job.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Begin nothing more."""
        self.thread.shutdown(wait=False, cancel_futures=True)


def scores(served: ServedModel, asked: Any) -> float:
    """Return about how many scores an answer takes; infinite where loops use several threads."""
    items, history = len(served.catalogue), getattr(asked, "history", None)
    own = RATING * len(history or ())
    if isinstance(served.model, EventModel) and (history or isinstance(asked, bodies.Explain)):
        return math.inf  # the items that somebody may have considered are drawn
    if isinstance(asked, bodies.Recommend) and len(asked.users) != 1:
        return math.inf
    if isinstance(asked, bodies.Ranking):
        return own + items * RANKING[asked.explore]
    if isinstance(asked, bodies.Explain):
        return REASON * len(asked.items)
    if isinstance(asked, bodies.Predict):
        return own + len(asked.items)
    among_users = isinstance(asked, bodies.Similar) and asked.item is None
    return len(served.model.users_) if among_users else items
