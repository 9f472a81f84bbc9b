"""More events for a model that is fitted: what it believes is the prior of what comes.

Only users and items that the new rows name are touched, and items whose odds they raise. Others who
were there before enter as they are, to be compared with: see negatives.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.inference.online import Online
from svmp.inference.steps import HoldThenDecay, StepContext, Steps
from svmp.kernels.machine.threads import use_threads
from svmp.models import UserItemPairs, matrix_factorization
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.ratings.table import keys_of
from svmp.recommend.graph import popularity, side_of
from svmp.recommend.negatives import NegativeSampler
from svmp.recommend.side import EntityTable, Keys, Side
from svmp.recommend.update import APART, enlarged, joined, replaced

if TYPE_CHECKING:
    from svmp.recommend.events import EventModel

GROWN = 1.25
"""An item is learned afresh, from all of its events, when it has so many times as many as the last
time. Else those who take it late would still count among those who passed it by."""
STILL = 1e-12
"""The step of what enters as it is, and does not learn."""


def taken_in(model: EventModel, ratings: Ratings) -> None:
    """Let a model learn from more events."""
    users = enlarged(model.users_, ratings.user_ids)
    items = enlarged(model.items_, ratings.item_ids)
    user = keys_of(users.ids, ratings.user_ids)[ratings.user]
    item = keys_of(items.ids, ratings.item_ids)[ratings.item]
    new = model._times(ratings.rating)
    history = joined(model.history_, user, item, ratings, len(users), add=model.counts)
    events = np.repeat(history.item, model._times(history.rating))
    odds = popularity(events, len(items), model.power)
    counts = np.bincount(events, minlength=len(items))
    user, item = np.repeat(user, new), np.repeat(item, new)
    learned = np.pad(model.learned_, (0, len(items) - len(model.learned_)))
    afresh = counts >= np.maximum(GROWN * learned, learned + 1)
    passed = NegativeSampler.of(model, history, odds, user, afresh)
    before = _events_of(model, afresh)
    user, item = np.concatenate([user, ~before[0]]), np.concatenate([item, before[1]])
    steps = range(1, model.iterations + 1)
    seed = (1 + len(history.item)) * max(model.iterations, 4)  # other draws than those before
    drawn = [passed.draw(model.seed_, seed + t) for t in steps]
    rng = np.random.default_rng([model.seed_, seed])
    nobody = np.zeros(len(users), bool)
    who = UpdateSide.of(users, len(model.users_), nobody, [user, *(rows[0] for rows in drawn)], rng)
    what = UpdateSide.of(
        items, len(model.items_), afresh, [item, *(rows[1] for rows in drawn)], rng
    )
    run = Online(
        MaskedSteps(HoldThenDecay(model.hold, model.kappa, tau=1.0), who.learns, what.learns),
        model.seed_,
        _start(who.start, what.start),
        threads=model.threads,
        tell=False,
    )
    with use_threads(model.threads, False):
        for t in steps:
            taken = np.repeat(np.array([1, 0], np.int8), [len(user), len(drawn[t - 1][0])])
            rows = who.rows[t], what.rows[t]
            run.advance(_network(who.prior, what.prior, *rows, taken, model.offset_))
    q = run.posteriors
    bias = who.prior.bias, who.prior.bias_var
    model.users_ = who.learned(users, side_of(*bias, q["u"]))
    model.items_ = what.learned(items, side_of(q["b"].mean, q["b"].var, q["v"]))
    model.history_, model.odds_ = history, odds
    model.learned_ = np.where(afresh, counts, learned)


def _events_of(model: EventModel, items: NDArray[np.bool_]) -> tuple[Keys, Keys]:
    """Return users and items of the events that a model has of some items."""
    history = model.history_
    rows = np.flatnonzero(items[history.item])
    rows = np.repeat(rows, model._times(history.rating[rows]))
    return history.user[rows].astype(np.int64), history.item[rows].astype(np.int64)


@dataclass(frozen=True, eq=False)
class UpdateSide:
    """The users, or the items, that an update reads.

    Attributes
    ----------
    nodes
        Their keys, each once; ~key where it enters as it is, and does not learn.
    prior, start
        What is believed of each before, and where its q starts.
    rows
        Of each iteration, by its number, the place in `nodes` of each row.
    """

    nodes: Keys
    prior: Side
    start: Side
    rows: list[Keys]

    @classmethod
    def of(
        cls,
        known: EntityTable,
        old: int,
        afresh: NDArray[np.bool_],
        keys: list[Keys],
        rng: np.random.Generator,
    ) -> UpdateSide:
        """Take the keys of the events, and of other rows of each iteration.

        Those from number `old` on are new. To learn afresh is to have the prior of a new one.
        """
        place = np.zeros(2 * len(known), np.int64)  # ~key counts from the end
        for some in keys:
            place[some] = 1
        nodes = np.flatnonzero(place)
        place[nodes] = np.arange(len(nodes))
        nodes[nodes >= len(known)] -= 2 * len(known)
        own, *others = (place[some] for some in keys)
        start = known.side.at(np.where(nodes < 0, ~nodes, nodes))
        again = (nodes >= 0) & afresh[nodes]
        prior = known.at(np.where(again, -1, np.where(nodes < 0, ~nodes, nodes)))
        new = nodes >= old
        start.mean[new] += (
            APART * np.sqrt(start.cov[new]) * rng.standard_normal(start.mean[new].shape)
        )
        return cls(nodes, prior, start, [own, *(np.append(own, o) for o in others)])

    @property
    def learns(self) -> NDArray[np.bool_]:
        """Whether each is to learn."""
        return self.nodes >= 0

    def learned(self, known: EntityTable, after: Side) -> EntityTable:
        """Put in what has become of those that learn."""
        return replaced(known, self.nodes[self.learns], after.at(self.learns))


@dataclass(frozen=True, eq=False)
class MaskedSteps:
    """Steps, of which users and items that do not learn take none to speak of.

    Attributes
    ----------
    steps
        Those of all others.
    users, items
        Which of them learn.
    """

    steps: Steps
    users: NDArray[np.bool_]
    items: NDArray[np.bool_]

    def __call__(self, look: StepContext) -> Any:
        learns = self.users if look.variable == "u" else self.items
        return np.where(learns, self.steps(look), STILL)


def _start(users: Side, items: Side) -> dict[str, dict[str, Any]]:
    return {
        "u": {"mu": users.mean, "tau": 1 / users.cov},
        "v": {"mu": items.mean, "tau": 1 / items.cov},
        "b": {"mu": items.bias, "tau": 1 / items.bias_var},
    }


def _network(
    users: Side, items: Side, user: Keys, item: Keys, taken: NDArray[np.int8], offset: float
) -> Model:
    """Declare the network of more events, with the q of the earlier ones as its prior."""
    return matrix_factorization(
        UserItemPairs(user, item, len(users), len(items)),
        taken,
        users.factors,
        priors={"u": users.factor_prior(), "v": items.factor_prior(), "b": items.bias_prior()},
        link="logit",
        offset=offset,
    )
