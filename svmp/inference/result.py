"""The result of `fit`: q, its bound and the status of the run; saving and loading it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.families.family import Array
from svmp.inference import files
from svmp.inference.diagnosis import Diagnosis
from svmp.inference.held_out import score
from svmp.inference.plot import plot
from svmp.inference.posterior import Posterior, Posteriors
from svmp.inference.program_summary import ProgramSummary
from svmp.inference.run import Run
from svmp.inference.run_record import RunRecord
from svmp.inference.summary import summarise
from svmp.network.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Fit(RunRecord):
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
    diagnosis
        Where and why a run diverged, and which first step would have been safe, which is determined
        on first access; None if the run did not diverge. It is not saved.
    program
        The updater of each variable, and why it was not a compiled one; `print(fit.program)`. It is
        not saved.
    """

    diagnosis: Diagnosis | None = None
    program: ProgramSummary | None = None

    @classmethod
    def of(cls, run: Run, status: str, diagnosis: Diagnosis | None = None) -> Fit:
        """Return the result of a run."""
        hidden, state, q = run.program.network.hidden, run.state, run.state.q

        def posterior(name: str, natural: Array) -> Posterior:
            v = hidden[name]
            return Posterior(name, v.dims, v.plate.shape, v.family, natural)

        def implicit(name: str) -> Posterior:
            return posterior(name, run.program.implicit_natural(q, name))

        stored = {name: posterior(name, q.natural[name]) for name in q.natural}
        posteriors = Posteriors(list(hidden), stored, implicit) if len(stored) < len(hidden) else stored
        return cls(
            status,
            state.measured.terms,
            state.trace,
            posteriors,
            state.iteration,
            int(state.accesses),
            run.budget.seconds,
            diagnosis,
            run.program.explain(),
        )

    def __getitem__(self, name: str) -> Posterior:
        if name not in self.posteriors:
            raise KeyError(f"no hidden variable '{name}'; there are {list(self.posteriors)}")
        return self.posteriors[name]

    def mean(self, name: str) -> Array:
        """Return the posterior mean, with the variable's dims."""
        return self[name].mean

    def var(self, name: str) -> Array:
        """Return the posterior variance, with the variable's dims."""
        return self[name].var

    def held_out(self, model: Model, values: Mapping[str, Any]) -> float:
        """Return the score of values that were left out of training, as in the trace.

        Parameters
        ----------
        model
            The model of this fit; a fit does not store its model.
        values
            By observed variable, an array with NaN or a mask where nothing is held out.

        Returns
        -------
        float
            The mean over held-out rows of what each would add to the bound, in nats.
        """
        return score(self.posteriors, model, values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to one safetensors file, atomically."""
        files.write(self, path)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the bound against the accesses, on a logarithmic axis as in the paper.

        Estimates are drawn as a band of two standard errors around the line of exact bounds. Needs
        matplotlib, which `pip install "svmp[plot]"` installs.

        Parameters
        ----------
        ax
            Axes to draw on; by default those of a new figure. Several fits can share them.
        options
            Passed to matplotlib's `plot`, as `label="full VB"`.

        Returns
        -------
        Axes
            The axes.
        """
        return plot(self, ax, **options)

    def summary(self) -> str:
        """Return how the run ended and a line for each hidden variable; `print(fit)` prints it."""
        return summarise(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"<Fit: {self.status} after {self.iterations:,} iterations, "
            f"bound {self.bound:,.6g}, q of {', '.join(self.posteriors)}>"
        )


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a saved fit.

    >>> import svmp, tempfile, os
    >>> with svmp.Model() as model:
    ...     p = svmp.Beta("p", alpha=1, beta=1)
    ...     x = svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
    >>> fit = svmp.fit(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(os.path.join(folder, "coin.svmp"))
    ...     again = svmp.load(os.path.join(folder, "coin.svmp"))
    >>> again["p"].alpha == fit["p"].alpha
    np.True_
    """
    return Fit(**files.read(path))
