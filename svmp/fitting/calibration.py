"""Simulation-based calibration: fit data whose true parameters are known, many times.

Each time parameters are drawn from the prior and data given them (Talts et al. 2018). If q were the
posterior, the rank of a true value among draws of q would be uniform, whatever the model. Ranks at
both ends mean that q is too sure, ranks in the middle that it is too unsure, ranks at one end that
it is biased. In contrast to all other checks this one is about the model's data as a whole, and not
about one data set.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.errors import ConvergenceWarning, ModelError
from svmp.families.family import Array
from svmp.fitting.fit import fit
from svmp.fitting.ranks import Ranks, band, fractions_of, p_value
from svmp.inference.methods import Method
from svmp.inference.running.progress import line_of_progress
from svmp.inference.running.seeds import Seed, generator, whole_seed
from svmp.inference.running.stopping import catch_interrupt
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.tables import html_table
from svmp.network.validation import shown
from svmp.posterior.prediction.prior import prior_predictive
from svmp.posterior.uncertainty.fitted import check_no_partly_known
from svmp.posterior.uncertainty.linear_response import asked_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 20
"""Fewest simulations: fewer ranks say nothing."""
ENTRIES = 100
"""Most numbers of one variable that are ranked: its first ones."""
DOUBT = 0.01
"""Ranks with a smaller p-value are called uneven."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of true values among draws of q.

    Attributes
    ----------
    ranks
        By variable, the rank of each of its numbers in each simulation, from 0 to `draws`.
    scores
        By variable, (true value - mean of q) / sd of q.
    draws
        Number of draws of q in each simulation.
    unconverged
        Number of simulations whose fit did not converge.
    """

    ranks: dict[str, Ranks]
    scores: dict[str, Array]
    draws: int
    unconverged: int = 0
    _p: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Number of simulations."""
        return len(next(iter(self.ranks.values())))

    def p_value(self, name: str) -> float:
        """Return the p-value of uniform ranks, corrected for the numbers of the variable."""
        ranks = self._of(name)
        if name not in self._p:
            each = [p_value(column, self.draws) for column in ranks.T]
            self._p[name] = min(1.0, min(each) * len(each))
        return self._p[name]

    def coverage(self, name: str, level: float = 0.9) -> float:
        """Return how often the central interval of q has the true value; `level` is right."""
        if not 0 < level < 1:
            raise ModelError(f"level must be between 0 and 1, not {shown(level)}")
        place = (self._of(name) + 0.5) / (self.draws + 1)
        return float((np.abs(place - 0.5) <= 0.5 * level).mean())

    def spread(self, name: str) -> float:
        """Return the root mean square of (true value - mean) / sd; 1 is right."""
        self._of(name)
        return float(np.sqrt((self.scores[name] ** 2).mean()))

    def verdict(self, name: str) -> str:
        """Return in a few words whether q of a variable is calibrated."""
        if self.p_value(name) >= DOUBT:
            return "calibrated"
        shift, spread = float(self.scores[name].mean()), self.spread(name)
        if shift**2 > 0.5 * spread**2:
            return "too low" if shift > 0 else "too high"
        covered = self.coverage(name, 0.5)
        return "too sure" if covered < 0.5 else "too unsure"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the ECDF of the ranks minus that of uniform ones, within a band of 95%.

        A curve that leaves the band is not that of a posterior. Needs matplotlib, which
        `pip install "svmp[plot]"` installs.

        Parameters
        ----------
        ax
            Axes to draw on; by default those of a new figure.
        """
        from svmp.posterior.output.figures import new_axes

        ax = new_axes() if ax is None else ax
        fractions = fractions_of(self.draws)
        low, high = band(self.n, self.draws)
        ax.fill_between(fractions, low - fractions, high - fractions, alpha=0.2, color="gray")
        for place, (name, ranks) in enumerate(self.ranks.items()):
            for entry, column in enumerate(ranks.T):
                below = (column[:, None] < np.arange(1, self.draws + 1)).mean(axis=0)
                label = name if entry == 0 else None
                ax.plot(fractions, below - fractions, lw=1, color=f"C{place % 10}", label=label)
        ax.set(xlabel="rank of the true value, as a fraction", ylabel="ECDF minus uniform")
        ax.legend()
        return ax

    def _of(self, name: str) -> Ranks:
        if name not in self.ranks:
            raise ModelError(f"there are ranks of {list(self.ranks)}, not of {shown(name)}")
        return self.ranks[name]

    def _lines(self) -> list[tuple[str, ...]]:
        """Return the table, its heads first."""
        heads = ("variable", "numbers", "in 50%", "in 90%", "spread", "p", "verdict")
        lines: list[tuple[str, ...]] = [heads]
        for name, ranks in self.ranks.items():
            covered = (f"{self.coverage(name, level):.0%}" for level in (0.5, 0.9))
            numbers = (f"{self.spread(name):.2f}", f"{self.p_value(name):.2g}")
            lines.append((name, str(ranks.shape[1]), *covered, *numbers, self.verdict(name)))
        return lines

    @property
    def _title(self) -> str:
        late = f", {self.unconverged} of them not converged" if self.unconverged else ""
        return f"{self.n} simulations{late}"

    def _repr_html_(self) -> str:
        heads, *rows = self._lines()
        return html_table(heads, rows, self._title)

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        table = (
            "  ".join(
                cell.ljust(width) if i in (0, 6) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return "\n".join([self._title, *table])


def calibrate(
    declare: Callable[[], Model] | Model,
    n: int = 200,
    *,
    names: Sequence[str] | None = None,
    draws: int = 99,
    seed: Seed = 0,
    method: Method | None = None,
    progress: bool | None = None,
    corrected: bool | None = None,
    **options: Any,
) -> Calibration:
    """Check a model's fits on simulated data: simulation-based calibration (Talts et al. 2018).

    Parameters
    ----------
    declare
        A function that returns the model, or the model. Its observed values are replaced by draws
        from the prior; those that are missing stay so. A function with parameters that are named as
        the observed variables is called with the simulated values instead, which chains need. All
        priors must be ones to simulate from: vague ones give data that no one will see.
    n
        Number of simulations, at least 20.
    names
        Hidden variables to check; by default all but Categoricals. Of components that can be
        exchanged, as in a mixture with equal priors, ranks mean nothing.
    draws
        Number of draws of each fit's posterior in each simulation.
    seed
        Seed of the simulations.
    method, options
        As for `svmp.fit`.
    progress
        Whether to show a line of progress; by default on a terminal or in a notebook. Ctrl-C ends
        with the simulations so far.
    corrected
        Whether the draws are those of linear response, or of q; by default those that a fit shows.

    Returns
    -------
    Calibration
        A table to print; `plot()` draws the ranks.

    >>> import svmp
    >>> def declare():
    ...     with svmp.Model() as model:
    ...         rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...         svmp.Poisson("count", mu=rate, observed=[0, 0, 0])
    ...     return model
    >>> svmp.calibrate(declare, n=50).verdict("rate")
    'calibrated'
    """
    made: Any = declared(declare) if callable(declare) else declare
    model = made
    if not isinstance(model, Model):
        raise ModelError(f"calibrate needs a function that returns a model, not {shown(declare)}")
    count, each = at_least(n, FEWEST, "n"), at_least(draws, 9, "draws")
    network = Network(model)
    network.check()
    check_no_partly_known(network, "simulations are not available")
    ranked = names_to_rank(network, names)
    seeds = generator(whole_seed(seed), "calibrate").integers(2**32, size=(count, 3))
    ranks: dict[str, list[Ranks]] = {name: [] for name in ranked}
    scores: dict[str, list[Array]] = {name: [] for name in ranked}
    done = unconverged = 0
    with catch_interrupt() as interrupt, line_of_progress(progress) as show:
        for first, second, third in seeds.tolist():
            show(f"simulation {done + 1} of {count}")
            truth = {k: v[0] for k, v in prior_predictive(model, 1, seed=first).items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted instead
                simulated = simulated_model(declare, model, truth)
                found = fit(simulated, method, seed=second, progress=False, **options)
            if interrupt.pressed:
                break
            drawn = found.draw(ranked, each, seed=third, corrected=corrected)
            done, unconverged = done + 1, unconverged + (found.status != "converged")
            for name, values in drawn.items():
                q = found.posterior(name, corrected=corrected)
                true, mean, sd = (np.ravel(x)[:ENTRIES] for x in (truth[name], q.mean, q.std))
                ranks[name].append((values.reshape(each, -1)[:, :ENTRIES] < true).sum(axis=0))
                scores[name].append((true - mean) / sd)
    if done < FEWEST:
        raise KeyboardInterrupt
    return Calibration(
        {name: np.array(rows) for name, rows in ranks.items()},
        {name: np.array(rows) for name, rows in scores.items()},
        each,
        unconverged,
    )


def declared(declare: Callable[..., Any]) -> Any:
    """Call the function that declares the model, without arguments."""
    try:
        needed = [
            name
            for name, p in inspect.signature(declare).parameters.items()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a function of another language has no signature
        needed = []
    if needed:
        raise ModelError(
            f"calibrate calls the function that declares the model without arguments, but it needs "
            f"{', '.join(needed)}; give them defaults, or give a model"
        )
    return declare()


def at_least(value: Any, fewest: int, name: str) -> int:
    """Check a whole number."""
    sound = isinstance(value, Integral) and not isinstance(value, bool)
    if not sound or int(value) < fewest:
        raise ModelError(f"{name} must be a whole number of at least {fewest}, not {shown(value)}")
    return int(value)


def names_to_rank(network: Network, names: Any) -> list[str]:
    """Return the variables to rank: those given, or all but Categoricals."""
    numbers = [name for name, v in network.hidden.items() if not v.family.nominal]
    if names is None:
        if not numbers:
            raise ModelError("all hidden variables are Categoricals, whose categories have no rank")
        return numbers
    for name in asked_names(names, network.hidden):
        if name not in numbers:
            raise ModelError(f"'{name}' is a Categorical, whose categories have no rank")
    return asked_names(names, network.hidden)


def simulated_model(declare: Any, model: Model, values: Mapping[str, Array]) -> Model:
    """Return the model with other observed values; missing ones stay missing.

    They are given to the function that declares it, if that has parameters for all of them.
    """
    given: dict[str, Any] = {}
    for name, variable in model.variables.items():
        if not variable.hidden:
            given[name] = np.ma.masked_array(values[name])
            absent = np.setdiff1d(np.arange(variable.size), variable.rows)
            if len(absent):
                mask = np.zeros((variable.size, given[name].size // variable.size), dtype=bool)
                mask[absent] = True
                given[name].mask = mask.reshape(given[name].shape)
    if callable(declare) and set(given) <= set(inspect.signature(declare).parameters):
        made: Model = declare(**given)
        return made
    if chains := Network(model).chains:
        raise ModelError(
            f"'{next(iter(chains))}' is a chain, so that declare must take the observed values as "
            f"parameters: {', '.join(given)}"
        )
    return model.with_data(**given)
