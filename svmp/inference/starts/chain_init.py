"""Starting probabilities of a chain of states, which `init` gives, against impossible transitions.

Marginals p and p' of two states that follow each other are possible only if for every state i and j

    p_i <= sum of p'_j over all j that can follow i,    p'_j <= sum of p_i over all i before j,

which for certain states says that the transition is possible.
"""

from __future__ import annotations

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Bools
from svmp.network.beliefs import Beliefs
from svmp.network.chains.discrete_chain import DiscreteChain

NEAR = 1e-4
"""Probability that counts as none: starts are spread a little over all states."""


def check_states(chain: DiscreteChain, q: Beliefs) -> None:
    """Refuse starting probabilities of impossible states or transitions."""
    name, sequences = chain.variable.name, chain.sequences
    marginal = q.moments[name]
    firsts = sequences.firsts
    begins = np.isfinite(chain.log_initial(q, firsts))
    wrong = (np.where(begins, 0.0, marginal[firsts]) > NEAR).any(axis=1)
    if wrong.any():
        row = int(firsts[np.argmax(wrong)])
        state = int(np.argmax(np.where(begins[np.argmax(wrong)], 0.0, marginal[row])))
        raise ModelError(
            f"init of '{name}' begins in state {state} at row {row}, which has a probability of 0; "
            "start in a state that is possible"
        )
    possible = np.isfinite(chain.log_transition(q))
    later = np.flatnonzero(sequences.previous >= 0)
    for group in np.flatnonzero(~possible.all(axis=(1, 2))):
        rows = later[chain.group[later] == group]
        before, now = marginal[sequences.previous[rows]], marginal[rows]
        wrong = _apart(before, now, possible[group]) | _apart(now, before, possible[group].T)
        if wrong.any():
            row = int(rows[np.argmax(wrong)])
            states = (int(marginal[r].argmax()) for r in (sequences.previous[row], row))
            raise ModelError(
                f"init of '{name}' goes from state {next(states)} to state {next(states)} at row "
                f"{row}, but P makes that impossible; give probabilities of possible transitions"
            )


def _apart(these: Array, others: Array, linked: Bools) -> Bools:
    """Return at which rows a state has more probability than all that it is linked with."""
    return np.asarray((these > others @ linked.T.astype(np.float64) + NEAR).any(axis=1))
