"""What a fit looks like: summaries, data frames, xarray, and figures."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.running.arguments import check_model
from svmp.inference.running.seeds import Seed
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import draw_count, tails
from svmp.posterior.marginals.rows import ENTRIES
from svmp.posterior.output.arviz_groups import fits_into_memory, model_groups
from svmp.posterior.output.bound_plot import plot, plot_trace
from svmp.posterior.output.datasets import draws_of, means_and_sds, to_arviz
from svmp.posterior.output.posterior_plot import plot_posterior
from svmp.posterior.output.summary import summarise
from svmp.posterior.prediction.joint import draw_together
from svmp.posterior.result.fit_uncertainty import FitUncertainty
from svmp.posterior.tables.entries import checked_names
from svmp.posterior.tables.frames import summary_frame, to_frame
from svmp.posterior.uncertainty.shown import note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FitOutput(FitUncertainty):
    """The part of `Fit` that shows it."""

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

    @known_keywords
    def summary(
        self,
        names: str | Collection[str] | None = None,
        *,
        prob: float = 0.9,
        kind: str = "table",
        backend: str = "pandas",
        corrected: bool | None = None,
        entries: int = ENTRIES,
    ) -> Any:
        """Return how the run ended, and mean, sd and interval of the hidden variables.

        Parameters
        ----------
        names
            Hidden variables, by default all.
        prob
            Probability of the central intervals.
        kind
            "table" for a table to print; "frame" for a data frame with a row for each entry of each
            variable.
        backend
            The library of a data frame: "pandas", "polars" or "pyarrow".
        corrected
            Whether sds and intervals of Normals and Gammas are those of linear response, or those
            of q, which are too small where variables depend on each other. By default they are the
            former in small networks, as for `predict`; the table says which.
        entries
            Most entries of an array that has a row for each of them in the table; a larger array
            has one row, with its range.

        Returns
        -------
        Summary or data frame
            `print(fit)` prints the table, and a notebook shows it.
        """
        source = self._with_covariances(corrected)
        if kind == "frame":
            tails(prob)
            return summary_frame(source, checked_names(self, names), prob, backend)
        if kind != "table":
            raise ModelError(f'kind must be "table" or "frame", not {shown(kind)}')
        notes = [note(self, source, self._shown, self._answer[1])]
        notes += [repr(block) for block in self.joint]
        notes += [] if self.restarts is None else ["", repr(self.restarts)]
        return summarise(source, names, prob, "\n".join(notes), draw_count(entries, "entries"))

    @known_keywords
    def to_frame(
        self,
        name: str | None = None,
        *,
        prob: float = 0.9,
        backend: str = "pandas",
        corrected: bool | None = None,
    ) -> Any:
        """Return a variable as a data frame: a row for each entry, with labels, mean, sd, interval.

        Parameters
        ----------
        name
            A hidden variable; by default all of them that are single numbers.
        prob
            Probability of the central intervals, from `lower` to `upper`.
        backend
            "pandas", "polars" or "pyarrow".
        corrected
            As for `summary`.

        Returns
        -------
        data frame
            A column for each dim, then `mean`, `sd`, `lower` and `upper`. A Categorical has its
            probabilities as means, and no interval. What the sds are those of is in `attrs` of a
            pandas frame, and in the metadata of the schema of a pyarrow table.
        """
        return to_frame(self._with_covariances(corrected), name, prob, backend)

    @known_keywords
    def to_xarray(
        self,
        names: str | Collection[str] | None = None,
        *,
        draws: int | None = None,
        seed: Seed = None,
        corrected: bool | None = None,
    ) -> Any:
        """Return the posteriors as an xarray Dataset, with dims and labels.

        Parameters
        ----------
        names
            Hidden variables, by default all.
        draws, seed
            Number of joint draws from q, along the dim `draw`, and their seed. By default the
            Dataset has means and standard deviations, along the dim `statistic`.
        corrected
            As for `summary`.

        Returns
        -------
        xarray.Dataset
            `data["u"].sel(statistic="mean", user="alice")`.
        """
        source = self._with_covariances(corrected)
        if draws is None:
            return means_and_sds(source, names)
        return draws_of(source, source._draws(names, draws, seed))

    @known_keywords
    def to_arviz(
        self,
        names: str | Collection[str] | None = None,
        *,
        model: Model | None = None,
        draws: int = 1000,
        seed: Seed = None,
        corrected: bool | None = None,
    ) -> Any:
        """Return draws for ArviZ, with log likelihoods, predictions and observed values.

        `az.loo` and `az.plot_ppc` work on the result. The scores of `az.loo` are those of the
        draws: `svmp.compare` weights them, so that they are nearer to those of the posterior.

        Parameters
        ----------
        names
            Hidden variables in the group `posterior`, by default all.
        model
            The model of this fit, for the groups `log_likelihood`, `posterior_predictive` and
            `observed_data`. Small networks keep it; fits of others have these groups if it is
            given. Without `model`, they are also left out above 20 million numbers.
        draws, seed
            Number of joint draws of the hidden variables, and their seed.
        corrected
            As for `summary`.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            A DataTree for ArviZ 1 and later. The draws are independent, in one chain. The group
            `trace` has the run.
        """
        wanted, size = checked_names(self, names), draw_count(draws, "draws")
        known = self._kept if model is None else model
        if model is not None:
            check_model(model)
        source = self._with_covariances(corrected)
        if known is None or (model is None and not fits_into_memory(known, size)):
            return to_arviz(source, source._draws(wanted, size, seed), {})
        drawn = source._draws(None, size, seed)
        groups = model_groups(self, known, drawn, seed)
        return to_arviz(source, {name: drawn[name] for name in wanted}, groups)

    @known_keywords
    def plot_posterior(
        self,
        names: str | Collection[str] | None = None,
        *,
        prob: float = 0.9,
        most: int = 40,
        corrected: bool | None = None,
    ) -> NDArray[Any]:
        """Draw the posteriors: densities of single numbers, intervals of arrays with their labels.

        An array of several dims has a line for each label of the longest, in which each label of
        the others has a colour.

        Parameters
        ----------
        names
            Hidden variables, by default all.
        prob
            Probability of the intervals.
        most
            Largest number of labelled lines in a panel; entries of larger arrays are sorted by
            their means, and drawn as a band.
        corrected
            As for `summary`.

        Returns
        -------
        array of Axes
            One for each variable; `axes[0].figure` is the figure.
        """
        source = self._with_covariances(corrected)
        return plot_posterior(source, checked_names(self, names), prob, most)

    def plot_trace(self) -> NDArray[Any]:
        """Draw the run: the bound, its distance from the best bound, and held-out scores.

        Returns
        -------
        array of Axes
            One for each; `axes[0].figure` is the figure.
        """
        return plot_trace(self)

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return str(self.summary()._repr_html_())

    def _draws(
        self, names: str | Collection[str] | None, draws: int, seed: Seed
    ) -> dict[str, Array]:
        """Return joint draws of some variables, by default of all."""
        size = draw_count(draws, "draws")
        return draw_together(self.posteriors, checked_names(self, names), size, seed, self.joint)
