"""q that is carried, sweep by sweep, through networks that share their hidden variables.

Their rows may be drawn anew each time, or be some of all. Each element reads all that are its
children, and moves by a step towards what they say:

    lambda_i <- (1 - rho_t) lambda_i + rho_t (eta_i + sum over its rows e of eta_(e -> i)).

No bound is computed and nothing is watched: that is for who decides how to go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from svmp.inference.engine import iterate
from svmp.inference.fused import find_loops
from svmp.inference.posterior import Posterior
from svmp.inference.selection import FullVB
from svmp.inference.start import start
from svmp.inference.steps import Steps
from svmp.kernels.machine.threads import use_threads
from svmp.network.beliefs import Beliefs
from svmp.network.model import Model
from svmp.network.network import Network


@dataclass
class Online:
    """q, while it is carried from one network to the next.

    Attributes
    ----------
    steps
        How far each iteration moves.
    seed, init
        For the start, as in `svmp.fit`.
    threads, tell
        How many, and whether to say so when loops must be compiled first.
    iteration, q
        How far it is.
    """

    steps: Steps
    seed: int = 0
    init: Any = None
    threads: int | None = None
    tell: bool = True
    iteration: int = 0
    q: Beliefs | None = None
    _hidden: dict[str, Any] = field(default_factory=dict)

    def advance(self, model: Model | Network) -> None:
        """Take one iteration on the rows of a network with the hidden variables of the last."""
        network = model if isinstance(model, Network) else Network(model)
        network.check()
        self.iteration += 1
        with np.errstate(all="ignore"), use_threads(self.threads, self.tell):
            if self.q is None:
                self.q = start(network, self.seed, self.init)
            self.q.loops = dict(find_loops(network))
            iterate(network, self.q, FullVB(), self.steps, self.seed, self.iteration)
        self._hidden = network.hidden

    def copy(self) -> Online:
        """Return another that goes its own way from here."""
        return replace(self, q=None if self.q is None else self.q.copy())

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """Q of every hidden variable, as `svmp.fit` returns it, until the next iteration."""
        assert self.q is not None
        return {
            name: Posterior(name, v.dims, v.plate.shape, v.family, self.q.natural[name])
            for name, v in self._hidden.items()
        }
