"""Update a model with more events: its posterior is the prior of the new rows.

As in `Fit.update`, no earlier row is read again for what the posterior contains; here every
iteration has other negatives. Only the users and items of the new rows change, and items whose odds
as negatives rise. Others are read but stay as they are: see negatives.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.fitting.online import Online
from svmp.inference.steps import HoldThenDecay, StepContext, Steps
from svmp.kernels.machine.threads import use_threads
from svmp.models import UserItemPairs, matrix_factorization
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.recommend.event_state import EventSettings, EventState
from svmp.recommend.graph import popularity, side_of
from svmp.recommend.negatives import NegativeSampler
from svmp.recommend.network import earlier_run, priors_of
from svmp.recommend.side import EntityTable, Keys, Side
from svmp.recommend.update import APART, enlarged, replaced, with_rows

GROWN = 1.25
"""An item is learned afresh, from all of its events, when their number has grown by this factor
since the last time. Otherwise users who take it late would still count as having passed it over."""
STILL = 1e-12
"""Step size of elements that are read but not updated."""


def update_events(state: EventState, settings: EventSettings, ratings: Ratings) -> EventState:
    """Return the state of a model after more events."""
    users, of_user = enlarged(state.users, ratings.user_ids)
    items, of_item = enlarged(state.items, ratings.item_ids)
    user, item = of_user[ratings.user], of_item[ratings.item]
    new = settings.times(ratings.rating)
    history = with_rows(state.history, user, item, ratings, len(users), add=settings.counts)
    events = np.repeat(history.item, settings.times(history.rating))
    odds = popularity(events, len(items), settings.power)
    counts = np.bincount(events, minlength=len(items))
    user, item = np.repeat(user, new), np.repeat(item, new)
    learned = np.pad(state.learned, (0, len(items) - len(state.learned)))
    afresh = counts >= np.maximum(GROWN * learned, learned + 1)
    negatives = NegativeSampler.of(state, settings, history, odds, user, afresh)
    earlier = _events_of(state, settings, afresh)
    user, item = np.concatenate([user, ~earlier[0]]), np.concatenate([item, earlier[1]])
    steps = range(1, settings.iterations + 1)
    first = (1 + len(history.item)) * max(settings.iterations, 4)  # not a draw of an earlier update
    drawn = [negatives.draw(settings.seed, first + t) for t in steps]
    rng = np.random.default_rng([settings.seed, first])
    nobody = np.zeros(len(users), bool)
    who = UpdateSide.of(users, len(state.users), nobody, [user, *(rows[0] for rows in drawn)], rng)
    what = UpdateSide.of(items, len(state.items), afresh, [item, *(rows[1] for rows in drawn)], rng)
    run = Online(
        MaskedSteps(HoldThenDecay(settings.hold, settings.kappa, tau=1.0), who.learns, what.learns),
        settings.seed,
        _start(who.start, what.start),
        threads=settings.threads,
        tell=False,
        earlier=earlier_run(who.before, what.before, but="a"),
    )
    with use_threads(settings.threads, False):
        for t in steps:
            taken = np.repeat(np.array([1, 0], np.int8), [len(user), len(drawn[t - 1][0])])
            rows = who.rows[t], what.rows[t]
            run.advance(_network(who, what, *rows, taken, settings.offset))
    q = run.posteriors
    bias = who.before.bias, who.before.bias_var
    return EventState(
        who.learned(users, side_of(*bias, q["u"])),
        what.learned(items, side_of(q["b"].mean, q["b"].var, q["v"])),
        history,
        odds,
        np.where(afresh, counts, learned),
    )


def _events_of(
    state: EventState, settings: EventSettings, items: NDArray[np.bool_]
) -> tuple[Keys, Keys]:
    """Return users and items of the earlier events of some items."""
    history = state.history
    rows = np.flatnonzero(items[history.item])
    rows = np.repeat(rows, settings.times(history.rating[rows]))
    return history.user[rows].astype(np.int64), history.item[rows].astype(np.int64)


@dataclass(frozen=True, eq=False)
class UpdateSide:
    """The users, or the items, that an update reads.

    Attributes
    ----------
    nodes
        Their distinct keys; ~key for an element that is read but not updated.
    before, start
        q of each before the update, which is the prior of those that are learned afresh; and its
        starting q.
    prior
        The prior of a new element.
    rows
        For each iteration, the place in `nodes` of each row.
    """

    nodes: Keys
    before: Side
    start: Side
    prior: Side
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
        """Collect the elements from the keys of the events and of the negatives of each iteration.

        Keys from `old` on are new. An element that is learned `afresh` gets the prior of a new one.
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
        before = known.at(np.where(again, -1, np.where(nodes < 0, ~nodes, nodes)))
        new = nodes >= old
        start.mean[new] += (
            APART * np.sqrt(start.cov[new]) * rng.standard_normal(start.mean[new].shape)
        )
        return cls(nodes, before, start, known.prior, [own, *(np.append(own, o) for o in others)])

    @property
    def learns(self) -> NDArray[np.bool_]:
        """Whether each element is updated."""
        return self.nodes >= 0

    def learned(self, known: EntityTable, after: Side) -> EntityTable:
        """Return all users or items, with the new q of those that were updated."""
        return replaced(known, self.nodes[self.learns], after.at(self.learns))


@dataclass(frozen=True, eq=False)
class MaskedSteps:
    """A step policy that leaves some users and items practically unchanged.

    Attributes
    ----------
    steps
        The policy of all others.
    users, items
        Which of them are updated.
    """

    steps: Steps
    users: NDArray[np.bool_]
    items: NDArray[np.bool_]

    def __call__(self, context: StepContext) -> Any:
        learns = self.users if context.variable == "u" else self.items
        return np.where(learns, self.steps(context), STILL)


def _start(users: Side, items: Side) -> dict[str, dict[str, Any]]:
    return {
        "u": {"mu": users.mean, "tau": 1 / users.cov},
        "v": {"mu": items.mean, "tau": 1 / items.cov},
        "b": {"mu": items.bias, "tau": 1 / items.bias_var},
    }


def _network(
    who: UpdateSide,
    what: UpdateSide,
    user: Keys,
    item: Keys,
    taken: NDArray[np.int8],
    offset: float,
) -> Model:
    """Declare the network of more events, with the priors of new users and items."""
    priors = priors_of(who.prior, what.prior)
    return matrix_factorization(
        UserItemPairs(user, item, len(who.nodes), len(what.nodes)),
        taken,
        who.prior.factors,
        priors={name: priors[name] for name in ("u", "v", "b")},
        link="logit",
        offset=offset,
    )
