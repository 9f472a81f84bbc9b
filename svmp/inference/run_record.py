"""The data of a finished run: what is saved, printed and plotted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from svmp.inference.posterior import Posterior
from svmp.inference.trace import Trace

Status = Literal["converged", "budget", "diverged", "interrupted"]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The approximate posterior, its bound, and how the run ended.

    Attributes
    ----------
    status
        "converged", "budget", "diverged" or "interrupted".
    bound_terms
        The exact bound of this q, as one term for each variable.
    trace
        The run, with a row for each time that the bound was computed; under full VB that is every
        iteration. `bound_se` is 0 where `bound` is exact, and the standard error of an estimate.
    posteriors
        Posteriors by variable; `fit["u"]` for short. Those of local variables may be computed on
        first access.
    iterations, accesses, seconds
        Cost of the run.
    """

    status: str
    bound_terms: dict[str, float]
    trace: Trace
    posteriors: Mapping[str, Posterior]
    iterations: int
    accesses: int
    seconds: float

    @property
    def bound(self) -> float:
        """The evidence lower bound of the q that is returned, in nats."""
        return sum(self.bound_terms.values())
