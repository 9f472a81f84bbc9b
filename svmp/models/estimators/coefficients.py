"""`model.summary()`: a row for each coefficient, in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri

from svmp.families.family import Array
from svmp.network.tables import Row
from svmp.posterior.marginals.posterior import Posterior, tails
from svmp.posterior.marginals.rows import number
from svmp.posterior.output.summary import Summary


def coefficient_table(title: str, rows: Sequence[Row], prob: float, notes: str = "") -> Summary:
    """Return a table of coefficients."""
    heads = ("coefficient", "mean", "sd", f"{prob:.0%} interval")
    return Summary(title, heads, tuple(rows), notes)


def coefficient_rows(names: Sequence[str], mean: Array, sd: Array, prob: float) -> list[Row]:
    """Return a row for each Normal coefficient.

    >>> coefficient_rows(["age"], np.array([1.0]), np.array([0.5]), 0.9)
    [('age', '1', '0.5', '0.1776 to 1.822')]
    """
    ends = mean + np.outer(ndtri(tails(prob)), sd)
    return [entry(n, m, s, e) for n, m, s, e in zip(names, mean, sd, ends.T, strict=True)]


def entry(name: str, mean: float, sd: float, ends: Array) -> Row:
    """Return the row of one number."""
    return name, number(mean), number(sd), " to ".join(map(number, ends))


def deviation_row(name: str, shape: float, scale: float, prob: float) -> Row:
    """Return the row of a standard deviation whose square is inverse gamma.

    >>> deviation_row("sd", 50.5, 50.0, 0.9)
    ('sd', '1.003', '0.07133', '0.8928 to 1.126')
    """
    mean = np.sqrt(scale) * np.exp(gammaln(shape - 0.5) - gammaln(shape)) if shape > 0.5 else np.inf
    sd = np.sqrt(max(scale / (shape - 1) - mean**2, 0.0)) if shape > 1 else np.inf
    ends = np.sqrt(scale / gammaincinv(shape, 1 - tails(prob)))
    return entry(name, mean, sd, ends)


def noise_row(tau: Posterior, size: float, prob: float) -> Row:
    """Return the row of the residual sd, given the Gamma q of the precision in standard units."""
    return deviation_row("sd of the noise", float(tau.alpha), size**2 * float(tau.beta), prob)
