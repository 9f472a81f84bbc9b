"""The data of a finished run: what is saved, printed and plotted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from svmp.inference.drifting import Drift
from svmp.inference.posteriors.joint_posterior import JointPosterior
from svmp.inference.posteriors.posterior import Posterior
from svmp.inference.restart_record import Restarts
from svmp.inference.trace import Trace
from svmp.inference.uncertainty.covariance import Covariance
from svmp.network.chains.continuing import SequenceEnds
from svmp.network.dims.coords import Extent

Status = Literal["converged", "budget", "diverged", "interrupted"]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What is kept of a run: the fields of `Fit` (result.py describes them) that are saved."""

    status: str
    bound_terms: dict[str, float]
    trace: Trace
    posteriors: Mapping[str, Posterior]
    iterations: int
    accesses: int
    seconds: float
    coords: dict[str, Extent] = field(default_factory=dict)
    parents: dict[str, list[str]] = field(default_factory=dict)
    forgetting: dict[str, float] = field(default_factory=dict)
    changed: dict[str, float] = field(default_factory=dict)
    drifts: dict[str, Drift] = field(default_factory=dict)
    joint: tuple[JointPosterior, ...] = ()
    ends: dict[str, SequenceEnds] = field(default_factory=dict)
    forms: dict[str, dict[str, str]] = field(default_factory=dict)
    restarts: Restarts | None = None
    response: Covariance | None = None
    responding: tuple[str, ...] = ()
    refused: str = ""

    @property
    def bound(self) -> float:
        """The evidence lower bound of the q that is returned, in nats."""
        return sum(self.bound_terms.values())
