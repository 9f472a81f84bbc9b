"""Follow slow changes: what was learned, forgotten at several rates side by side.

A jump shows in one update (`forgetting.py`); a slow drift shows in none, but in many. So an update
with forget="learn" carries what earlier rows would have taught at each of some rates r of keeping,

    S_r <- k r S_r + L,    L: the messages of the new rows,

and the probability w_r that r is the right one. Given L, the evidence of the new rows is

    log p(rows | r) = A(eta + k r S_r + L) - A(eta + k r S_r) + const,

which is exact with one hidden variable. The rate may change between updates, with probability
SWITCH (Herbster and Warmuth 1998, "fixed share"); the prior of the new rows has the natural
parameter eta + k S, S = sum_r w_r r S_r. Rates are almost certainly 1 at first, and a stationary
stream lets them be: the probability that its rows favour another by a factor c is at most 1 / c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.dims.matching import VariableMatch
from svmp.network.network import Network
from svmp.posterior.record.drift import RATES, Drift

EVERY = np.arange(len(RATES))
SWITCH = 0.0002
"""Probability that the rate changes between two updates."""


@dataclass(frozen=True, eq=False)
class Paths:
    """S_r of one variable before an update, on the network of the new rows.

    Attributes
    ----------
    weights
        w_r before the new rows are seen.
    kept
        r S_r of each rate.
    """

    weights: Array
    kept: Array

    @classmethod
    def of(cls, taught: Array, drift: Drift | None, match: VariableMatch) -> Paths:
        """Return the paths of a variable of which `taught` is S; they are all S at first."""
        before = np.zeros(len(RATES))
        before[0] = 1.0
        past = np.broadcast_to(taught, (len(RATES), *taught.shape)).copy()
        if drift is not None:
            before = drift.weights
            told = np.flatnonzero((taught != 0).any(axis=1) & (match.known >= 0))
            columns = np.arange(taught.shape[1])
            then = columns
            if match.categories is not None:
                columns = np.flatnonzero(match.categories.known >= 0)
                then = match.categories.known[columns]
            past[np.ix_(EVERY, told, columns)] += drift.offsets[
                np.ix_(EVERY, match.known[told], then)
            ]
        weights = (1 - SWITCH) * before + SWITCH / len(RATES)
        return cls(weights, RATES[:, None, None] * past)

    def mean(self, weights: Array) -> Array:
        """Return S = sum_r w_r r S_r."""
        return np.einsum("r,res->es", weights, self.kept)

    def posterior(self, network: Network, q: Beliefs, name: str, k: float, learned: Array) -> Array:
        """Return w_r given the new rows, of which q has seen the messages beside `learned`."""
        elements = np.flatnonzero((self.kept != 0).any(axis=(0, 2)))
        variable = network.hidden[name]
        eta = np.array(variable.conditional.to_child(q, elements))
        rows = q.natural[name][elements] - eta - learned[elements]
        priors = eta + k * self.kept[:, elements]
        family = variable.family.at(elements)
        sound = np.ones(len(elements), dtype=bool)
        for prior in priors:
            sound &= family.in_domain(prior) & family.in_domain(prior + rows)
        if not sound.all():
            elements, rows, priors = elements[sound], rows[sound], priors[:, sound]
            family = variable.family.at(elements)
        evidence = [
            float((family.log_partition(prior + rows) - family.log_partition(prior)).sum())
            for prior in priors
        ]
        log = np.log(self.weights) + evidence
        return np.asarray(np.exp(log - np.logaddexp.reduce(log)))

    def price(self, weights: Array) -> float:
        """Return the KL of w_r after the new rows from w_r before, in nats."""
        some = weights > 0
        return float(weights[some] @ np.log(weights[some] / self.weights[some]))

    def after(
        self, used: Array, weights: Array, k: float, drift: Drift | None, match: VariableMatch
    ) -> Drift:
        """Return what is carried on: S_r less S, with elements that the new rows do not have.

        Parameters
        ----------
        used, weights
            The weights of the S in the prior of the new rows, and those after them.
        k
            The share of it that was kept.
        drift, match
            What was carried before, and where its elements are.
        """
        now = k * (self.kept - self.mean(used))
        columns = match.categories.size if match.categories is not None else now.shape[2]
        offsets = np.zeros((len(RATES), int(np.prod(match.plate)), columns))
        if drift is not None:
            offsets[:, match.earlier, : drift.offsets.shape[2]] = drift.offsets
        place = match.categories.place if match.categories is not None else np.arange(columns)
        offsets[np.ix_(EVERY, match.place, place)] = now
        return Drift(weights, offsets)
