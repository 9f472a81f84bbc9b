"""Online inference: the same q updated on a sequence of networks that share their hidden variables.

The rows of each network may be new or a sample. Each element reads all of its children among them
and takes a step:

    lambda_i <- (1 - rho_t) lambda_i + rho_t (eta_i + sum over its rows e of eta_(e -> i)).

No bound is computed, and divergence is not detected: the caller decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from svmp.inference.engine import step
from svmp.inference.methods import FullVB
from svmp.inference.posterior import Posterior
from svmp.inference.program import Program
from svmp.inference.start import start
from svmp.inference.state import State
from svmp.inference.steps import Steps, as_policy
from svmp.kernels.machine.threads import use_threads
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.variable import Variable


@dataclass
class Online:
    """A q that is updated on one network after another.

    Attributes
    ----------
    steps
        The step policy.
    seed, init
        For the start, as in `svmp.fit`.
    threads, tell
        Number of threads, and whether to print a notice when loops must be compiled first.
    state
        State of the run; None before the first network.
    """

    steps: Steps
    seed: int = 0
    init: Any = None
    threads: int | None = None
    tell: bool = True
    state: State | None = None
    _hidden: dict[str, Variable] = field(default_factory=dict)

    @property
    def iteration(self) -> int:
        """Number of iterations so far."""
        return 0 if self.state is None else self.state.iteration

    def advance(self, model: Model | Network) -> None:
        """Run one iteration on a network with the same hidden variables as the last."""
        network = model if isinstance(model, Network) else Network(model)
        network.check()
        policy = as_policy(self.steps)
        program = Program.of(
            network, FullVB(), policy=policy, seed=self.seed, stored=network.hidden
        )
        with np.errstate(all="ignore"), use_threads(self.threads, self.tell):
            if self.state is None:
                self.state = State(start(network, self.seed, self.init))
            program.attach(self.state.q)
            self.state, _ = step(program, self.state)
        program.detach(self.state.q)
        self._hidden = network.hidden
        if network is not model:
            network.derived.clear()  # sorted rows are not left to the garbage collector

    def copy(self) -> Online:
        """Return an independent copy."""
        if self.state is None:
            return replace(self)
        return replace(self, state=self.state.copy())

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """Posterior of every hidden variable; valid until the next iteration."""
        assert self.state is not None
        natural = self.state.q.natural
        return {
            name: Posterior(name, v.dims, v.plate.shape, v.family, natural[name])
            for name, v in self._hidden.items()
        }
