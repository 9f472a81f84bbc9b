"""The row of one variable in a table: mean, sd and interval, or their ranges over an array."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from svmp.families.family import Array
from svmp.network.tables import Row, html_table

LARGEST = 100_000
"""Most entries of an array whose intervals are computed for its row."""


def heads(prob: float) -> Row:
    """Return the heads of the table."""
    return "variable", "family", "dims", "mean", "sd", f"{prob:.0%} interval"


def row(
    name: str, family: str, dims: tuple[str, ...], mean: Array, sd: Array, ends: Array | None
) -> Row:
    """Return the row of one variable.

    Parameters
    ----------
    name, family, dims
        Of the variable.
    mean, sd
        Of its entries. The mean of a Categorical has one more axis than dims: the categories.
    ends
        Lower and upper ends of the intervals, or None.

    >>> row("u", "Normal", ("a",), np.array([0.5, 2]), np.ones(2), np.array([[0, 1.5], [1, 2.5]]))
    ('u', 'Normal', 'a: 2', '0.5 to 2', '1', '0 to 2.5')
    """
    sizes = ", ".join(f"{d}: {n:,}" for d, n in zip(dims, mean.shape, strict=False))
    if not mean.size:
        return name, family, sizes, "none", "", ""
    interval = "" if ends is None else f"{number(ends[0].min())} to {number(ends[1].max())}"
    return name, family, sizes, span(mean), span(sd), interval


def span(values: Array) -> str:
    """Return the smallest and the largest number, once if they are the same."""
    return " to ".join(dict.fromkeys(number(end) for end in (values.min(), values.max())))


def number(value: float) -> str:
    """Return a number with four digits.

    >>> number(-0.00123456), number(12345678.0), number(np.float64(0))
    ('-0.001235', '1.235e+07', '0')
    """
    return f"{value:.4g}"


def row_html(cells: Row, parameters: Mapping[str, Array], prob: float, sds: str = "q") -> str:
    """Return the row of one variable and its parameters as a table in HTML.

    Parameters
    ----------
    cells, parameters, prob
        The row, the parameters, and the probability of the interval.
    sds
        What the sd is that of.
    """
    table = [*zip(heads(prob), cells, strict=True)]
    table += [(name, span(values)) for name, values in parameters.items() if np.size(values)]
    table += [("sds by", sds)] if sds != "q" else []
    return html_table(("", ""), [line for line in table if line[1]], f"q({cells[0]})")
