"""How far to trust a fit: covariances that q does not have, k-hat, and a diagnosis in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from svmp.errors import ModelError
from svmp.inference.running.seeds import Seed
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.checks.psis import DRAWS, importance
from svmp.posterior.checks.trust import diagnose
from svmp.posterior.record.covariance import Covariance
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.corrected import corrected_fields, response_of
from svmp.posterior.uncertainty.linear_response import covariance


@dataclass(frozen=True, eq=False)
class FitUncertainty(RunRecord):
    """The part of `Fit` that says how far to trust it; small networks keep their model for it."""

    _kept: Model | None = None

    @known_keywords
    def covariance(
        self,
        names: str | Sequence[str],
        *,
        model: Model | None = None,
        method: str | None = None,
    ) -> Covariance:
        """Return posterior covariances that see the dependence between variables.

        Within the blocks of `svmp.fit(model, joint=...)` they are those of q. Elsewhere q is a
        product, in which variables are independent and their variances too small. Linear
        response (Giordano, Broderick & Jordan 2015) computes how the means of q move when the model
        is tilted, which gives covariances within and between variables. They are exact where the
        posterior is Normal. See docs/uncertainty.md.

        Parameters
        ----------
        names
            Hidden variables, of up to 1,000 numbers together: each takes a linear system.
        model
            The model of this fit, which linear response needs.
        method
            "linear_response", or "q" (also "mean_field") for those of q itself, which is the
            default for a fit with joint blocks.

        Returns
        -------
        Covariance
            `std("mu")` is a standard deviation, `matrix` all covariances.

        >>> import svmp
        >>> with svmp.Model() as model:
        ...     a = svmp.Normal("a", mu=0, tau=1)
        ...     b = svmp.Normal("b", mu=0, tau=1)
        ...     svmp.Normal("y", mu=a + b, tau=1, observed=[3.0])
        <observed Normal 'y' {'y_dim_0': 1}>
        >>> fit = svmp.fit(model)
        >>> fit["a"].var, fit.covariance("a", model=model).var("a")  # 1/2, where 2/3 is right
        (array(0.5), array(0.66666667))
        """
        chosen = ("q" if self.joint else "linear_response") if method is None else method
        return covariance(self, names, model, chosen)

    def corrected(
        self, model: Model | None = None, names: str | Sequence[str] | None = None
    ) -> Self:
        """Return this fit with the covariances of linear response in the place of those of q.

        Its Normals are one joint block with the same means, so that predictions, draws, intervals
        and summaries have standard deviations that are not too small because of each other. Its
        Gammas have the same means and the new variances. A fit with joint blocks keeps these, and
        the precisions of their rows have new variances. The bound is still that of q. It is meant
        to be read, and not to be fitted on.

        Parameters
        ----------
        model
            The model of this fit; it can be left out for small networks, whose fit keeps it.
        names
            Normals, MvNormals and Gammas, by default all.

        >>> import svmp
        >>> with svmp.Model() as model:
        ...     a = svmp.Normal("a", mu=0, tau=1)
        ...     b = svmp.Normal("b", mu=0, tau=1)
        ...     _ = svmp.Normal("y", mu=a + b, tau=1, observed=[1.0, 2.0])
        >>> fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
        >>> f"{fit['a'].var:.3f}, {fit.corrected()['a'].var:.3f}"
        '0.333, 0.600'
        """
        if model is None and names is None and self._response is not None:
            found = self._response
        else:
            found = response_of(self, self._kept if model is None else model, names)
        return replace(self, **corrected_fields(self, found), response=None, _kept=None)

    @cached_property
    def _response(self) -> Covariance | None:
        """Covariances of linear response; None for large networks, and where there are none."""
        if self.response is not None or self._kept is None:
            return self.response
        try:
            return response_of(self, self._kept)
        except ModelError:
            return None

    @cached_property
    def _repaired(self) -> Self | None:
        """The fit with the covariances of linear response, if it has them by default."""
        return None if self._response is None else self.corrected()

    @known_keywords
    def khat(self, model: Model, *, draws: int = DRAWS, seed: Seed = 0) -> float:
        """Return how far q is from the posterior: PSIS k-hat (Yao et al. 2018).

        Up to 0.5 q is near enough for importance weights to work well, and up to 0.7 for them to
        work; beyond that q misses parts of the posterior that no weights repair. Choices of
        mixtures are summed out. It grows with the number of hidden numbers, even where each of them
        alone is right. See docs/uncertainty.md.

        Parameters
        ----------
        model
            The model of this fit.
        draws
            Number of draws from q, at least 100; each costs about a plain sweep.
        seed
            Seed of the draws.

        Returns
        -------
        float
            k-hat; 0 where q is the posterior itself. Needs arviz-stats, which
            `pip install "svmp[psis]"` installs.
        """
        return importance(self, model, draws, seed).khat

    @known_keywords
    def diagnose(self, model: Model, *, draws: int = DRAWS, seed: Seed = 0) -> str:
        """Return a paragraph on whether to trust the means, the variances and the bound.

        Parameters
        ----------
        model
            The model of this fit.
        draws, seed
            Number of draws from q for PSIS, as for `khat`, and their seed.

        Returns
        -------
        str
            Plain words, with the numbers behind them: k-hat, sds by linear response beside those of
            q, and the gap between the bound and the log evidence. Needs arviz-stats, which
            `pip install "svmp[psis]"` installs.
        """
        return diagnose(self, model, draws, seed)

    def _with_covariances(self, corrected: bool | None) -> Self:
        """Return this fit, with the covariances of linear response if it is to have them."""
        if corrected not in (None, True, False):
            raise ModelError(f"corrected must be True, False or None, not {shown(corrected)}")
        if corrected:
            return self.corrected() if self._repaired is None else self._repaired
        return self if corrected is False else self._repaired or self
