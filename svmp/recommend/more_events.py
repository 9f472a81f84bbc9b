"""More events for a model that is fitted: what it believes is the prior of what comes.

Only the users whom the new rows name are touched, and the items that these took or considered. What
else they considered is drawn as in a fit, `ratio` times as many as there are new events, and never
what they took before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from svmp.inference.carried import Carried
from svmp.inference.steps import HoldThenDecay
from svmp.kernels.threads import use_threads
from svmp.network.distributions import Bernoulli, Normal
from svmp.network.expressions import dot
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.ratings.table import keys_of
from svmp.recommend.graph import Events, popularity, side_of
from svmp.recommend.side import Floats, Keys, Side
from svmp.recommend.update import enlarged, joined, replaced

if TYPE_CHECKING:
    from svmp.recommend.events import EventModel


def taken_in(model: EventModel, ratings: Ratings) -> None:
    """Let a model learn from more events."""
    users = enlarged(model.users_, ratings.user_ids)
    items = enlarged(model.items_, ratings.item_ids)
    user = keys_of(users.ids, ratings.user_ids)[ratings.user]
    item = keys_of(items.ids, ratings.item_ids)[ratings.item]
    new = model._times(ratings.rating)
    history = joined(model.history_, user, item, ratings, len(users), add=model.counts)
    times = model._times(history.rating)
    odds = popularity(np.repeat(history.item, times), len(items), model.power)
    some, place = np.unique(user, return_inverse=True)
    begin, rows = history.rows_of(some)
    taken = Events(begin, history.item[rows], odds, model.ratio)
    own = np.repeat(place, new), np.repeat(item, new)
    others = _considered(taken, np.bincount(place, new, len(some)) * model.ratio)
    before = users.side.at(some), items.side
    who = np.concatenate([own[0], taken.user[others]])
    answer = np.repeat(np.array([1, 0], np.int8), [len(own[0]), others.sum()])
    steps = HoldThenDecay(model.hold, model.kappa, tau=1.0)
    run = Carried(steps, model.seed_, _start(*before), threads=model.threads, tell=False)
    with use_threads(model.threads, False):
        for t in range(1, model.iterations + 1):
            drawn = taken.draw(model.seed_, -100 - t)[others]
            what = np.concatenate([own[1], drawn])
            run.advance(_network(*before, who, what, answer, model.offset_))
    q = run.posteriors
    after = side_of(before[0].bias, before[0].bias_var, q["u"])
    model.users_ = replaced(users, some, after)
    every = np.arange(len(items))
    model.items_ = replaced(items, every, side_of(q["b"].mean, q["b"].var, q["v"]))
    model.history_, model.odds_ = history, odds


def _considered(events: Events, wanted: Floats) -> NDArray[np.bool_]:
    """Choose edges: so many of each user that are no events, or all that there are."""
    place = np.arange(len(events.user)) - events.ends[events.user]
    first = np.diff(events.begin)[events.user]
    return (place >= first) & (place < first + np.maximum(np.rint(wanted), 1)[events.user])


def _start(users: Side, items: Side) -> dict[str, dict[str, object]]:
    return {
        "u": {"mu": users.mean, "tau": 1 / users.cov},
        "v": {"mu": items.mean, "tau": 1 / items.cov},
        "b": {"mu": items.bias, "tau": 1 / items.bias_var},
    }


def _network(
    users: Side, items: Side, user: Keys, item: Keys, taken: NDArray[np.int8], offset: float
) -> Model:
    """Declare the network in which the q of before is the prior of what comes."""
    sizes = {"user": len(users), "item": len(items), "factor": users.factors}
    with Model(coords=sizes) as model:
        u = Normal("u", mu=users.mean, tau=1 / users.cov, dims=("user", "factor"))
        v = Normal("v", mu=items.mean, tau=1 / items.cov, dims=("item", "factor"))
        b = Normal("b", mu=items.bias, tau=1 / items.bias_var, dims="item")
        logit = dot(u[user], v[item]) + b[item] + offset
        Bernoulli("taken", logit=logit, observed=taken)
    return model
