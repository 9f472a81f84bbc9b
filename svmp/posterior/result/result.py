"""The result of `fit`: q, its bound and the status of the run; saving and loading it."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.execute import Outcome
from svmp.inference.methods import Method
from svmp.inference.program.program_summary import ProgramSummary
from svmp.inference.running.diagnosis import Diagnosis
from svmp.inference.running.seeds import Seed
from svmp.network.declaration import Declaration
from svmp.network.dims.matching import hidden_coords
from svmp.network.forms import form_of, parents_of
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.other_names import OF_FIT, refuse_attribute
from svmp.posterior.checks.held_out_scores import score
from svmp.posterior.files import fit_files as files
from svmp.posterior.marginals.chain_posterior import ChainPosterior
from svmp.posterior.marginals.from_run import posteriors_of
from svmp.posterior.marginals.posterior import Posterior, Posteriors
from svmp.posterior.output.predictive_plot import observed_values, plot_predictive
from svmp.posterior.prediction.filtered import Filtered, filtered
from svmp.posterior.prediction.joint import draw_together
from svmp.posterior.prediction.predict import predict
from svmp.posterior.prediction.prediction import Prediction
from svmp.posterior.record.kinds import kind_of
from svmp.posterior.result.fit_output import FitOutput
from svmp.posterior.uncertainty.shown import AFTER_UPDATE, IN_PARTS
from svmp.posterior.uncertainty.small import kept
from svmp.posterior.updating import updating
from svmp.posterior.updating.updating import Forget

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Fit(FitOutput):
    """The approximate posterior, its bound, and how the run ended.

    Attributes
    ----------
    status
        "converged", "budget", "diverged" or "interrupted".
    bound_terms
        The exact bound of this q, as one term for each variable.
    remaining
        How far q is from where more sweeps would lead, in sds of means of rows and of parameters,
        by extrapolation; None if it is not known. See docs/convergence.md.
    diverged_bound
        The exact bound where a run diverged, which may be infinite or NaN; None if it did not.
    trace
        The run, with a row for each time that the bound was computed; under full VB that is every
        iteration. `bound_se` is 0 where `bound` is exact, and the standard error of an estimate.
    posteriors
        q itself, by variable: the distributions that the bound belongs to. Those of local variables
        may be computed on first access. `fit["u"]` has the variances that the fit shows.
    covariances
        What the variances that it shows are those of: "linear response" in small networks, "a joint
        block", or "q". `corrected=False` asks any call for those of q: see docs/uncertainty.md.
    iterations, accesses, seconds
        Cost of the run.
    coords
        Sizes or labels of the dims of the hidden variables.
    parents
        By hidden variable, the hidden variables that it depends on.
    forgetting, changed
        After `update(..., forget="learn")`, by variable the share of what was learned that was
        forgotten, and the probability that the variable has jumped.
    drifts
        By variable, the state of `forget="learn"` for the next update.
    joint
        The joint q of each block of `joint=`.
    ends
        By chain, q of the last row of each sequence, from which `update` continues.
    forms
        By variable and parameter of its density, the variables in that parameter.
    diagnosis
        Where and why a run diverged, and which first step would have been safe (computed on first
        access); None if the run did not diverge. It is not saved.
    program
        The updater of each variable, and why it was not a compiled one; `print(fit.program)`. It is
        not saved.
    restarts
        After `svmp.fit(..., restarts=)`, how each start ended, as a table to print: its seed,
        bound, status and sweeps. None for a single start.
    response
        The covariances of linear response that a loaded fit was saved with; None in other fits,
        which compute them when they are needed.
    responding
        In a fit that `corrected` returned, the variables with variances of linear response.
    refused
        Why there are none, where that is known: after an update, in parts, in a loaded fit.
    """

    diagnosis: Diagnosis | None = None
    program: ProgramSummary | None = None
    _model: weakref.ref[Declaration] | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Fit:
        """Return the result of a run."""
        run = outcome.run
        network, state, q = run.program.network, run.state, run.state.q
        posteriors, joint = posteriors_of(run.program, q)
        return cls(
            outcome.status,
            state.measured.terms,
            state.trace,
            posteriors,
            state.iteration,
            int(state.accesses),
            run.budget.seconds,
            coords=hidden_coords(network),
            parents={name: parents_of(v) for name, v in network.hidden.items()},
            joint=joint,
            ends=updating.ends_of(network, q),
            forms={name: form_of(v) for name, v in {**network.hidden, **network.observed}.items()},
            remaining=run.remaining,
            diverged_bound=run.diverged_bound if outcome.status == "diverged" else None,
            diagnosis=outcome.diagnosis,
            program=run.program.explain(),
            _model=weakref.ref(network.model),
            refused="" if isinstance(network.model, Model) else IN_PARTS,
            _kept=kept(network),
        )

    def __getitem__(self, name: str) -> Posterior:
        return self.posterior(name)

    def path(self, name: str) -> NDArray[np.int64]:
        """Return the most likely path of each sequence of a chain, as a state for each row.

        It is the path with the largest probability under q, by the algorithm of Viterbi.
        """
        q = self[name]
        if not isinstance(q, ChainPosterior):
            raise ModelError(
                f"'{name}' is not a chain of states, or has rows of an earlier fit too, and so has "
                f"no path; use fit.mean('{name}')"
            )
        return q.path()

    def filtered(self, model: Model, name: str) -> Filtered:
        """Return the states of a chain of vectors given the rows up to each of them.

        Parameters
        ----------
        model
            The model of this fit.
        name
            A `LinearGaussianChain`. The filtered states of a chain of states are
            `fit[name].filtered()`.

        Returns
        -------
        Filtered
            Means and covariances: `mean` and `cov` given the rows up to each row, `predicted_mean`
            and `predicted_cov` given those before it.
        """
        return filtered(self, model, name)

    @known_keywords
    def mean(self, name: str, *, corrected: bool | None = None) -> Array:
        """Return the posterior mean, with the variable's dims."""
        return self.posterior(name, corrected=corrected).mean

    @known_keywords
    def var(self, name: str, *, corrected: bool | None = None) -> Array:
        """Return the posterior variance, with the variable's dims."""
        return self.posterior(name, corrected=corrected).var

    @known_keywords
    def std(self, name: str, *, corrected: bool | None = None) -> Array:
        """Return the posterior standard deviation, with the variable's dims."""
        return self.posterior(name, corrected=corrected).std

    def held_out(self, model: Model, values: Mapping[str, Any]) -> float:
        """Return the score of values that were left out of training, as in the trace.

        Parameters
        ----------
        model
            The model of this fit.
        values
            By observed variable, an array with NaN or a mask where nothing is held out.

        Returns
        -------
        float
            The mean over held-out rows of what each would add to the bound, in nats.
        """
        return score(self.posteriors, model, values, self.joint)

    @known_keywords
    def predict(
        self,
        model: Model,
        name: str,
        *,
        noise: bool = True,
        draws: int = 1000,
        seed: Seed = 0,
        new: Collection[str] = (),
        known: Collection[str] = (),
        corrected: bool | None = None,
    ) -> Prediction:
        """Return the distribution of rows that are new or missing, or of any other rows.

        Elements that the fit knows have their q, new ones their prior given the q of what is above
        them; the rows themselves teach nothing. With the model that was fitted, this imputes the
        values that are missing in it.

        Parameters
        ----------
        model
            The same network, declared on the rows to predict. Values of `name` are not read, and
            need not be given. Elements along a dim with labels are known by label. Without labels,
            those along the rows of a table are new, and all others known by position; in the model
            that was fitted, all are known.
        name
            A variable that was observed in the fit; or a hidden one, of which elements that the fit
            knows have their q.
        noise
            Whether to predict rows, or their means given their parents (in a mixture, those of the
            chosen component).
        draws, seed
            Number of draws of what cannot be integrated over in closed form, and their seed.
        new, known
            Dims without labels whose elements are all new, or are those of the fit by position.
        corrected
            Whether Normals and Gammas have the covariances of linear response, as in `corrected`,
            or those of q. By default they have the former in small networks, of at most 300
            numbers and a second of work; the prediction says which. See docs/prediction.md.

        Returns
        -------
        Prediction
            Its `mean`, `var`, `std`, `quantile`, `interval` and joint `draw`.

        >>> import svmp
        >>> def declare(dose, dead=None):
        ...     with svmp.Model(coords={"trial": len(dose)}) as model:
        ...         slope = svmp.Normal("slope", mu=0, tau=1)
        ...         _ = svmp.Bernoulli("dead", logit=slope * dose, dims="trial", observed=dead)
        ...     return model
        >>> fit = svmp.fit(declare([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1]))
        >>> fit.predict(declare([0.0, 4.0]), "dead").mean.round(2)
        array([0.5 , 0.82])
        """
        fitted = self._model is not None and self._model() is model
        source = self._with_covariances(corrected)
        kind = kind_of(source)
        return predict(source, model, name, fitted, noise, draws, seed, new, known, kind)

    @known_keywords
    def draw(
        self,
        names: Collection[str],
        size: int = 1,
        seed: Seed = None,
        *,
        corrected: bool | None = None,
    ) -> dict[str, Array]:
        """Return joint draws of several variables, each with a new first axis.

        Parameters
        ----------
        names
            Hidden variables.
        size, seed
            As for the draws of one variable, `fit["u"].draw`.
        corrected
            Whether Normals and Gammas have the covariances of linear response, or those of q. By
            default the former in small networks.
        """
        source = self._with_covariances(corrected)
        return draw_together(source.posteriors, names, size, seed, source.joint)

    def update(
        self,
        model: Model,
        method: Method | None = None,
        *,
        forget: Forget = 0.0,
        new: Collection[str] = (),
        **options: Any,
    ) -> Fit:
        """Return the fit after new rows; what was learned is their prior, and no old row is read.

        With one hidden variable this is Bayes' rule: the result is that of one fit to all rows. In
        other networks it is the same approximation as q itself: what earlier rows have said to a
        variable stays as it was when they were read.

        Parameters
        ----------
        model
            The same network, declared for the new rows only. Elements along a dim with labels in
            `coords` are the same as earlier ones if their labels are, and new labels are added:
            new users, new items, new words of a Dirichlet. Without labels, elements along the rows
            of an observed table are new, and all others the same by position. A sequence of a chain
            with the same value of its key goes on from its last state; others begin with `init`.
        method
            As for `svmp.fit`.
        forget
            Share of what was learned to forget, at least 0 and less than 1; or "learn", which
            learns a share for each variable: see `forgetting`.
        new
            Dims without labels whose elements are all new, as the documents of today; or the dim of
            sequences, which then begin anew whatever their keys are.
        options
            Other options of `svmp.fit`.

        Returns
        -------
        Fit
            Posteriors of all elements: the earlier ones first, in their order, then new ones; those
            that the model does not declare keep their q. Of variables along new rows, only those of
            the new rows. The bound and the trace are those of the new rows.

        >>> import svmp
        >>> def counts(observed):
        ...     with svmp.Model() as model:
        ...         rate = svmp.Gamma("rate", alpha=2, beta=1)
        ...         svmp.Poisson("count", mu=rate, observed=observed)
        ...     return model
        >>> fit = svmp.fit(counts([3, 4])).update(counts([8]))
        >>> fit["rate"].alpha, fit["rate"].beta
        (array(17.), array(4.))
        """
        if self.joint or options.get("joint"):
            raise ModelError(
                "update keeps what earlier rows taught variable by variable, which a joint q is "
                "not; fit all rows together, or leave out joint="
            )
        found = updating.update(self, model, forget, new, {"method": method, **options})
        if found.outcome.warning is not None:
            warnings.warn(found.outcome.warning, stacklevel=2)
        rows = Fit.of(found.outcome)
        return replace(
            rows,
            posteriors=Posteriors(
                list(rows.posteriors), found.posteriors, lambda name: rows.posteriors[name]
            ),
            coords=found.coords,
            ends=found.ends,
            forgetting=found.forgetting,
            changed=found.changed,
            drifts=found.drifts,
            refused=AFTER_UPDATE,
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            refuse_attribute(self, OF_FIT, name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to one safetensors file, atomically."""
        files.write(self._record(), path)

    def plot_predictive(
        self,
        model: Model | Prediction,
        name: str | None = None,
        *,
        x: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        prob: float = 0.9,
        ax: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Draw a prediction with its interval, beside the observed values.

        Parameters
        ----------
        model, name
            As for `predict`; or a `Prediction`.
        x
            A number for each row, to draw the prediction against; by default its place or label.
        observed
            Values to draw beside it; by default those of the model, if it has any.
        prob
            Probability of the interval.
        ax
            Axes to draw on; by default those of a new figure.
        options
            Other options of `predict`.

        Returns
        -------
        Axes
            The axes.
        """
        if isinstance(model, Prediction):
            return plot_predictive(model, x, observed, prob, ax)
        if name is None:
            raise ModelError("say which variable to predict: fit.plot_predictive(model, name)")
        prediction = self.predict(model, name, **options)
        if observed is None and model[prediction.name].observed is not None:
            observed = observed_values(model[prediction.name])
        return plot_predictive(prediction, x, observed, prob, ax)

    def __repr__(self) -> str:
        sound = self.status != "diverged"
        after = f" after {self.iterations:,} iterations" if sound else ""
        of_q = "" if sound else "of this q "
        return (
            f"<Fit: {self.ending}{after}, bound {of_q}{self.bound:,.6g}, "
            f"q of {', '.join(self.posteriors)}>"
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
