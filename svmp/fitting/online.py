"""Online inference: the same q updated on a sequence of networks that share their hidden variables.

The rows of each network may be new or a sample. Each element reads all of its children among them
and takes a step:

    lambda_i <- (1 - rho_t) lambda_i + rho_t (eta_i + sum over its rows e of eta_(e -> i)).

If there is an earlier run, what it learned is the prior of every network, as in updating.py: it is
computed once, since the networks differ in their rows only.

No bound is computed, and divergence is not detected: the caller decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.inference.engine import step
from svmp.inference.loops import use_loops
from svmp.inference.methods import FullVB
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.inference.steps import Steps, as_policy
from svmp.kernels.machine.threads import use_threads
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.variable import Variable
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.updating.updating import prepare


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
    earlier
        A run whose posterior is the prior of the networks, see `Fit.update`; elements that it does
        not know have their declared prior.
    kernels
        Whether compiled loops are used.
    state
        State of the run; None before the first network.
    """

    steps: Steps
    seed: int = 0
    init: Any = None
    threads: int | None = None
    tell: bool = True
    earlier: RunRecord | None = None
    kernels: bool = True
    state: State | None = None
    _hidden: dict[str, Variable] = field(default_factory=dict)
    _taught: dict[str, Array] = field(default_factory=dict)
    _program: Program | None = field(default=None, repr=False)

    @property
    def iteration(self) -> int:
        """Number of iterations so far."""
        return 0 if self.state is None else self.state.iteration

    def advance(self, model: Model | Network) -> None:
        """Run one iteration on a network with the same hidden variables as the last."""
        self._iterate(model)

    def _iterate(self, model: Model | Network) -> None:
        """Update every hidden variable once, by the engine."""
        network, init = self._continued(model)
        program = self._program_of(network)
        with (
            np.errstate(all="ignore"),
            use_threads(self.threads, self.tell),
            use_loops(self.kernels),
        ):
            if self.state is None:
                self.state = State(start(network, self.seed, init))
            program.attach(self.state.q)
            self.state, _ = step(program, self.state)
        program.detach(self.state.q)
        self._hidden = network.hidden
        if network is not model:
            network.derived.clear()  # sorted rows are not left to the garbage collector
            self._program = None

    def _program_of(self, network: Network) -> Program:
        """Return the program of a network, which is kept for the next iteration on it."""
        if self._program is None or self._program.network is not network:
            network.check()
            policy = as_policy(self.steps)
            self._program = Program.of(
                network,
                FullVB(),
                policy=policy,
                kernels=self.kernels,
                seed=self.seed,
                stored=network.hidden,
            )
        return self._program

    def _continued(self, model: Model | Network) -> tuple[Network, Any]:
        """Return a network whose prior is what the earlier run learned, and the starting values."""
        if self.earlier is None:
            return model if isinstance(model, Network) else Network(model), self.init
        declared = model.model if isinstance(model, Network) else model
        if self.state is not None:
            return Network(declared, self._taught), self.init
        found = prepare(self.earlier, declared, seed=self.seed)
        self._taught = dict(found.taught)
        return found.network, {**found.start, **(self.init or {})}

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
