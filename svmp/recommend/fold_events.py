"""One user of events given the items: the fixed point of the updates of that user's factors alone.

The items that a user may have considered are not drawn once but several times, and those of each
draw count by as much less: that is nearer to the mean over graphs. A row acts as a rating
(x - 1/2) / w with precision w, where w follows from the moments of its logit; so given w it is what
fold.py does, and given the user w is known again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmp.factors.bernoulli_logit import weight
from svmp.recommend.fold import UserPosterior
from svmp.recommend.graph import EventGraph
from svmp.recommend.side import Keys, Side, score

if TYPE_CHECKING:
    from svmp.recommend.events import EventModel

DRAWS = 4
"""How often the items are drawn that a user may have considered."""
PASSES = 50
REST = 1e-4
"""The user is at rest when no mean moves by more than this."""


def at_rest(model: EventModel, items: Keys, times: Keys) -> tuple[Side, UserPosterior]:
    """Return q of a user who took some items, so many times each, and what it is made of."""
    prior = model.users_.prior
    begin = np.array([0, times.sum()])
    events = EventGraph(begin, np.repeat(items, times).astype(np.int32), model.odds_, model.ratio)
    draws = [events.draw(model.seed_, -t)[begin[1] :] for t in range(1, DRAWS + 1)]
    others = np.concatenate(draws).astype(np.int64)
    rows = model.items_.at(np.concatenate([items, others]))
    taken = np.repeat([1.0, 0.0], [len(items), len(others)])
    count = np.concatenate([times, np.full(len(others), 1 / DRAWS)])
    user = prior
    for _ in range(PASSES):
        mean, var = score(user.at(np.zeros(len(rows), np.int64)), rows)
        w = weight(np.sqrt((mean + model.offset_) ** 2 + var).astype(np.float64))
        target = (taken - 0.5) / w - model.offset_
        conditional = UserPosterior.of(rows, target, count * w, prior)
        before, user = user, conditional.side()
        if np.abs(user.mean - before.mean).max(initial=0) <= REST:
            break
    return user, conditional
