"""The random graph of Paquet and Koenigstein (2013): items that users took, and negatives.

A user with d events has considered the items of these, and about `ratio` times d others (negatives)
drawn with odds proportional to a power of their popularity. An edge of the graph is a row; its
logit is

    z = u_user . v_item + b_item - log(ratio),

so that the prior probability of an event is its share of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.threads import share
from svmp.models import GammaPrior, NormalPrior, UserItemPairs, matrix_factorization
from svmp.network.model import Model
from svmp.posterior.marginals.posterior import Posterior
from svmp.recommend.draw_graph import Odds, draw_graph, odds
from svmp.recommend.side import Keys, Side

LEAST = 0.5
"""Popularity of an item without events."""


@dataclass(frozen=True, eq=False)
class EventGraph:
    """Events sorted by user, and the distribution of the negatives.

    Attributes
    ----------
    begin, item
        User m took `item[begin[m] : begin[m + 1]]`, with an entry for each event.
    weights
        Odds of each item as a negative.
    ratio
        Number of negatives per event.
    """

    begin: Keys
    item: NDArray[np.int32]
    weights: Array
    ratio: float

    @cached_property
    def table(self) -> Odds:
        """Alias table of the negatives."""
        return odds(self.weights)

    @cached_property
    def ends(self) -> Keys:
        """The edges of user m are `ends[m] : ends[m + 1]`.

        A user has at most half of the items that they did not take as negatives.
        """
        events = np.diff(self.begin)
        left = np.maximum(len(self.weights) - events, 0) // 2
        others = np.minimum(np.maximum(np.rint(self.ratio * events), events > 0), left)
        return np.concatenate([[0], np.cumsum(events + others.astype(np.int64))])

    @cached_property
    def user(self) -> NDArray[np.int32]:
        """User of each edge."""
        return np.repeat(np.arange(len(self.ends) - 1, dtype=np.int32), np.diff(self.ends))

    @cached_property
    def taken(self) -> NDArray[np.int8]:
        """Whether each edge is an event; the events of a user come before the negatives."""
        place = np.arange(len(self.user)) - self.ends[self.user]
        return (place < np.diff(self.begin)[self.user]).astype(np.int8)

    def draw(self, seed: int, iteration: int) -> NDArray[np.int32]:
        """Return the item of each edge, which depends only on the seed and the iteration."""
        out = np.empty(len(self.user), np.int32)
        share(draw_graph, seed, iteration, self.table, self.begin, self.item, self.ends, out)
        return out


def popularity(item: NDArray[np.int32], items: int, power: float) -> Array:
    """Return the number of events of each item, to a power and normalised to a sum of 1."""
    weights = np.maximum(np.bincount(item, minlength=items), LEAST) ** power
    return weights / weights.sum()


def network(
    events: EventGraph, item: NDArray[np.int32], factors: int, precision: float | None
) -> Model:
    """Declare the network of one graph; a precision of None is learned."""
    learned = GammaPrior(alpha=1, beta=1)
    priors: dict[str, NormalPrior | GammaPrior] = {}
    if precision is None:
        priors = {"of_u": learned, "of_v": learned}
    priors |= {x: NormalPrior(0, f"of_{x}" if precision is None else precision) for x in "uv"}
    return matrix_factorization(
        UserItemPairs(events.user, item, len(events.begin) - 1, len(events.weights)),
        events.taken,
        factors,
        priors=priors | {"b": NormalPrior(0, learned)},
        link="logit",
        offset=-float(np.log(events.ratio)),
    )


def side_of(bias: Any, bias_var: Any, factors: Posterior) -> Side:
    """Return users or items, given their biases and q of their factors."""
    arrays = bias, bias_var, factors.mean, factors.var
    return Side(*(np.ascontiguousarray(a, np.float32) for a in arrays))
