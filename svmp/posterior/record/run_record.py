"""The data of a finished run: what is saved, printed and plotted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.trace import Trace
from svmp.network.chains.continuing import SequenceEnds
from svmp.network.dims.coords import Extent
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.covariance import Covariance
from svmp.posterior.record.drift import Drift
from svmp.posterior.record.restart_record import Restarts


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
    diverged_bound: float | None = None
    remaining: float | None = None
    responding: tuple[str, ...] = ()
    refused: str = ""

    @property
    def ending(self) -> str:
        """How the run ended, in words."""
        if self.status != "diverged":
            near = self.status == "converged" and self.remaining is not None
            return f"converged within {self.remaining:.1g} sd" if near else self.status
        bound = self.diverged_bound
        there = "not kept" if bound is None else "not finite"
        if bound is not None and math.isfinite(bound):
            there = f"{bound:,.6g}"
        return (
            f"diverged at iteration {self.iterations:,} (bound there {there}); q is that of the "
            "last sound iteration"
        )

    @property
    def bound(self) -> float:
        """The evidence lower bound of the q that is returned, in nats."""
        return sum(self.bound_terms.values())


def coords_of(earlier: RunRecord) -> dict[str, Extent]:
    """Return the sizes of the dims of a fit that was saved without labels."""
    return {
        dim: int(size)
        for q in earlier.posteriors.values()
        for dim, size in zip(q.dims, q.mean.shape, strict=False)
    }
