"""How far to trust a fit: covariances that q does not have, k-hat, and a diagnosis in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from svmp.errors import ModelError
from svmp.inference.running.seeds import Seed
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.checks.psis import DRAWS, importance
from svmp.posterior.checks.trust import diagnose
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.covariance import Covariance, NothingToCorrect
from svmp.posterior.record.kinds import kind_of, kind_of_variable
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import labelled
from svmp.posterior.uncertainty.corrected import corrected_fields, response_of
from svmp.posterior.uncertainty.linear_response import asked_names, covariance


@dataclass(frozen=True, eq=False)
class FitUncertainty(RunRecord):
    """The part of `Fit` that says how far to trust it; small networks keep their model for it."""

    _kept: Model | None = None
    _read: dict[tuple[str, bool | None], Posterior] = field(default_factory=dict, init=False)

    @property
    def covariances(self) -> str:
        """Where the variances and covariances that the fit shows come from.

        "linear response", "a joint block", "linear response and a joint block", or "q": see
        docs/uncertainty.md. `fit[name].covariances` is that of one variable.
        """
        return kind_of(self._shown)

    @known_keywords
    def posterior(self, name: str, *, corrected: bool | None = None) -> Posterior:
        """Return the posterior of a variable, which is `fit[name]`.

        Parameters
        ----------
        name
            A hidden variable.
        corrected
            Whether Normals and Gammas have the variances of linear response, or those of q. By
            default the former in small networks. Every call that shows variances has this argument.
        """
        if name not in self.posteriors:
            raise KeyError(f"no hidden variable '{name}'; there are {list(self.posteriors)}")
        key = name, checked(corrected)
        if key not in self._read:
            self._read[key] = labelled(self, self._posterior(*key))
        return self._read[key]

    def _posterior(self, name: str, corrected: bool | None) -> Posterior:
        """Return the posterior of a variable, whose entries have no labels yet."""
        if corrected is None and not may_be_corrected(self, name):
            return self.posteriors[name]
        source = self._with_covariances(corrected)
        q, kind = source.posteriors[name], kind_of_variable(source, name)
        return q if kind == q.covariances else replace(q, covariances=kind)

    @known_keywords
    def covariance(
        self,
        names: str | Sequence[str],
        *,
        model: Model | None = None,
        method: str | None = None,
        corrected: bool | None = None,
    ) -> Covariance:
        """Return posterior covariances that account for the dependence between variables.

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
            The model of this fit, which linear response needs; small networks keep it.
        method
            "linear_response", or "q" (also "mean_field") for those of q itself, which is the
            default for a fit with joint blocks. By default a Gamma has the variance that the fit
            shows, matched on the log scale; with method="linear_response" it has that of the
            response of its mean.
        corrected
            `False` is the same as `method="q"`, as in all other calls.

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
        >>> fit.var("a", corrected=False), fit.covariance("a").var("a")  # 1/2; 2/3 is right
        (array(0.5), array(0.66666667))
        """
        if checked(corrected) is not None and method is not None:
            raise ModelError("give method= or corrected=, not both")
        if corrected is False:
            method = "q"
        if method is None and self.joint:
            found = self._with_covariances(corrected)
            return replace(covariance(found, names, model, "q"), covariances=kind_of(found))
        own = model is None or model is self._kept
        known = self._response if method is None and own else None
        if known is not None:
            listed = asked_names(names, self.posteriors)
            if set(listed) <= set(known.names):
                q = self._shown.posteriors
                means = [q[n].mean for n in listed]
                shapes = tuple(np.shape(mean) for mean in means)
                flat = np.concatenate([np.ravel(mean) for mean in means])
                return Covariance(tuple(listed), shapes, flat, known.of(listed))
        if model is None and self.refused and method is None:
            raise ModelError(self.refused)
        return covariance(self, names, self._kept if model is None else model, method)

    def corrected(
        self, model: Model | None = None, names: str | Sequence[str] | None = None
    ) -> Self:
        """Return this fit with the covariances of linear response in the place of those of q.

        Its Normals are one joint block with the same means, so that predictions, draws, intervals
        and summaries have standard deviations that are not too small because of each other. The
        logarithms of its Gammas have the same means and the new variances. A fit with joint blocks
        keeps these, and the precisions of their rows have new variances. The bound is still that of
        q. Use it to read results, not as the start of another fit. Small networks show all this
        anyway.

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
        >>> f"{fit.var('a', corrected=False):.3f}, {fit.corrected()['a'].var:.3f}"
        '0.333, 0.600'
        """
        if self.responding and model is None:
            raise ModelError("this fit has the covariances of linear response already")
        if model is None and names is None:
            if self._response is not None:
                return replace(self, **corrected_fields(self, self._response), _kept=None)
            if self.refused:
                raise ModelError(self.refused)
        found = response_of(self, self._kept if model is None else model, names)
        return replace(self, **corrected_fields(self, found), _kept=None)

    @cached_property
    def _answer(self) -> tuple[Covariance | None, str]:
        """Covariances of linear response by default, or the reason why they are refused."""
        if self.response is not None or self.refused or self._kept is None:
            return self.response, self.refused
        try:
            return response_of(self, self._kept), ""
        except NothingToCorrect:
            return None, ""
        except ModelError as error:
            return None, str(error)

    @property
    def _response(self) -> Covariance | None:
        """Covariances of linear response; None for large networks, and where there are none."""
        return self._answer[0]

    @cached_property
    def _shown(self) -> Self:
        """The fit with the variances and covariances that it shows: see shown.py."""
        return self if self._response is None else self.corrected()

    def _with_covariances(self, corrected: bool | None) -> Self:
        """Return the fit with the variances that a call shows: `corrected` is its argument."""
        if checked(corrected) is None:
            return self._shown
        if corrected:
            return self if self.responding else self._by_request
        if self.responding:
            raise ModelError(
                "this fit has the covariances of linear response alone; those of q are in the fit "
                "that it was made from"
            )
        return self

    @cached_property
    def _by_request(self) -> Self:
        """The fit with the covariances of linear response, whatever its size."""
        return self.corrected() if self._response is None else self._shown

    def _record(self) -> Self:
        """Return the fit as it is saved."""
        response, refused = self._answer
        return replace(self, response=response, refused=refused)

    @known_keywords
    def khat(self, model: Model | None = None, *, draws: int = DRAWS, seed: Seed = 0) -> float:
        """Return how far q is from the posterior: PSIS k-hat (Yao et al. 2018).

        Up to 0.5 q is near enough for importance weights to work well, and up to 0.7 for them to
        work; beyond that q misses parts of the posterior that no weights repair. Choices of
        mixtures are summed out. It grows with the number of hidden numbers, even where each of them
        alone is right. See docs/uncertainty.md.

        Parameters
        ----------
        model
            The model of this fit; it can be left out for small networks, whose fit keeps it.
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
        return importance(self, self._model_of(model), draws, seed).khat

    @known_keywords
    def diagnose(self, model: Model | None = None, *, draws: int = DRAWS, seed: Seed = 0) -> str:
        """Return a paragraph on whether to trust the means, the variances and the bound.

        Parameters
        ----------
        model
            The model of this fit; it can be left out for small networks, whose fit keeps it.
        draws, seed
            Number of draws from q for PSIS, as for `khat`, and their seed.

        Returns
        -------
        str
            Plain words, with the numbers behind them: k-hat, sds by linear response beside those of
            q, and the gap between the bound and the log evidence. Needs arviz-stats, which
            `pip install "svmp[psis]"` installs.
        """
        return diagnose(self, self._model_of(model), draws, seed, self._response)

    def _model_of(self, model: Model | None) -> Model:
        """Return the model that was given, or else the one that was kept."""
        found = self._kept if model is None else model
        if found is None:
            raise ModelError(
                "this needs model=, the model of this fit: fits of large networks, and those that "
                "were loaded, do not keep it"
            )
        return found


def checked(corrected: Any) -> bool | None:
    """Return whether covariances of linear response are asked for; None is the default."""
    if corrected is not None and not isinstance(corrected, bool):
        raise ModelError(f"corrected must be True, False or None, not {shown(corrected)}")
    return corrected


def may_be_corrected(fit: RunRecord, name: str) -> bool:
    """Return whether a variable may have other variances than those of q."""
    family = fit.posteriors[name].family
    return family.gaussian is not None or family.precision == "number"
