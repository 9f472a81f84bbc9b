"""What `fit` fits: rows in one table, or rows that lie in parts.

A `Problem` makes the network, the program and the start of a run. `OneTable` is that of a model;
`svmp.parts` has the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from svmp.errors import ModelError
from svmp.inference.methods import Method
from svmp.inference.methods.method import check_order
from svmp.inference.program.default import choose
from svmp.inference.program.joint_blocks import Joint, check_joint_method, find_joint
from svmp.inference.program.program import Program
from svmp.inference.running.estimate import Estimator
from svmp.inference.running.held_out import HeldOut, Scorer
from svmp.inference.starts.start import Init, start
from svmp.inference.steps import Policy
from svmp.inference.updaters.joint_block import JointBlock
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.saving.fingerprint import describe

HeldOutArgument = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]
"""Held-out values by variable; of rows in parts, a function from the rows of a part to them."""


class Problem(ABC):
    """A network with its data, ready to be fitted.

    Attributes
    ----------
    network
        The network; of rows in parts, that of the hidden variables of all parts.
    natural_only
        Variables whose moments are computed from their natural parameters when they are read.
    joint
        Blocks of variables with a joint q.
    """

    network: Network
    natural_only: Collection[str] = ()
    joint: tuple[JointBlock, ...] = ()

    def joining(self, joint: Joint | None) -> Problem:
        """Return the problem with joint blocks of variables."""
        if joint is None or joint is False:
            return self
        raise ModelError(
            "joint= needs all rows in one table, not in parts; leave it out, or fit one model"
        )

    def check(self) -> None:
        """Refuse a network that cannot be fitted."""
        self.network.check()

    @property
    @abstractmethod
    def description(self) -> dict[str, dict[str, str]]:
        """By variable, its density and a hash of its data, by which checkpoints are recognised."""

    @abstractmethod
    def choose(self, method: Method | None, policy: Policy | None) -> tuple[Method, Policy, bool]:
        """Return the algorithm, the steps, and whether to go on after a divergence."""

    @abstractmethod
    def program(
        self, method: Method, policy: Policy, kernels: bool, seed: int, stored: Collection[str]
    ) -> Program:
        """Return the program of a run."""

    @abstractmethod
    def start(self, program: Program, init: Init | None) -> Beliefs:
        """Return a starting point of q for a program."""

    @abstractmethod
    def with_held_out(self, values: HeldOutArgument) -> tuple[Problem, Scorer]:
        """Return the problem and the scorer of held-out values, which are checked."""

    @abstractmethod
    def estimator(self, method: Method) -> Estimator | None:
        """Return what estimates the bound between exact ones, where there are many rows."""


@dataclass(frozen=True, eq=False)
class OneTable(Problem):
    """A model whose rows are all in memory, in one table for each observed variable."""

    network: Network
    joint: tuple[JointBlock, ...] = ()

    def joining(self, joint: Joint | None) -> Problem:
        return replace(self, joint=find_joint(self.network, joint))

    @property
    def description(self) -> dict[str, dict[str, str]]:
        return describe(self.network)

    def choose(self, method: Method | None, policy: Policy | None) -> tuple[Method, Policy, bool]:
        if self.joint:
            method = check_joint_method(method, policy)
        method, policy, persistent = choose(self.network, method, policy)
        check_order(self.network, method.order)
        return method, policy, persistent

    def program(
        self, method: Method, policy: Policy, kernels: bool, seed: int, stored: Collection[str]
    ) -> Program:
        return Program.of(
            self.network,
            method,
            kernels,
            policy=policy,
            seed=seed,
            stored=stored,
            joint=self.joint,
        )

    def start(self, program: Program, init: Init | None) -> Beliefs:
        implicit = {name: updater.loops for name, updater in program.implicit.items()}
        return program.attach(start(self.network, program.seed, init, implicit))

    def with_held_out(self, values: HeldOutArgument) -> tuple[Problem, Scorer]:
        return self, HeldOut.of(self.network, values)

    def estimator(self, method: Method) -> Estimator | None:
        return None if method.over is not None else Estimator.of(self.network)


class Divided(ABC):
    """Rows that lie in parts, as `svmp.Parts`."""

    @abstractmethod
    def problem(self, client: Any) -> Problem:
        """Read what the parts have in common; with a client, on its workers."""

    @abstractmethod
    def close(self) -> None:
        """Release what was loaded."""
