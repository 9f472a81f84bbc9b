"""The rows of one variable in a table: mean, sd and interval.

A small array has a row for each entry, named by its labels; a large one a single row, with ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from svmp.families.family import Array
from svmp.network.tables import Row, html_table

ENTRIES = 20
"""Most entries of an array that has a row for each of them."""
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
    lengths = sizes(dims, mean.shape)
    if not mean.size:
        return name, family, lengths, "none", "", ""
    interval = "" if ends is None else f"{number(ends[0].min())} to {number(ends[1].max())}"
    return name, family, lengths, span(mean), span(sd), interval


def sizes(dims: Sequence[str], shape: Sequence[int]) -> str:
    """Return dims with their sizes.

    >>> sizes(("user", "k"), (1000, 2))
    'user: 1,000, k: 2'
    """
    return ", ".join(f"{d}: {n:,}" for d, n in zip(dims, shape, strict=False))


def entry_names(name: str, labels: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of the entries of an array, given the labels along each axis.

    >>> entry_names("u", [["ann", "bo"], ["0"]]), entry_names("u", [])
    (['u[ann, 0]', 'u[bo, 0]'], ['u'])
    """
    return [f"{name}[{', '.join(at)}]" if at else name for at in product(*labels)]


def entry_rows(names: Sequence[str], mean: Array, sd: Array, ends: Array | None) -> list[Row]:
    """Return name, mean, sd and interval of each entry.

    >>> entry_rows(["u[a]"], np.array([0.5]), np.ones(1), np.array([[-1], [2]]))
    [('u[a]', '0.5', '1', '-1 to 2')]
    """
    texts = [[number(value) for value in np.ravel(values)] for values in (mean, sd)]
    intervals = [""] * mean.size
    if ends is not None:
        pairs = np.reshape(ends, (2, -1)).T
        intervals = [" to ".join(map(number, pair)) for pair in pairs]
    return list(zip(names, *texts, intervals, strict=True))


def span(values: Array) -> str:
    """Return the smallest and the largest number, once if they are the same."""
    return " to ".join(dict.fromkeys(number(end) for end in (values.min(), values.max())))


def number(value: float) -> str:
    """Return a number with four digits.

    >>> number(-0.00123456), number(12345678.0), number(np.float64(0))
    ('-0.001235', '1.235e+07', '0')
    """
    return f"{value:.4g}"


def posterior_html(
    about: Row,
    entries: Sequence[Row],
    parameters: Mapping[str, Array],
    prob: float,
    sds: str = "q",
) -> str:
    """Return one variable as tables in HTML: its row and parameters, and a row for each entry.

    `sds` says where the sd comes from: q, a joint block or linear response.
    """
    told = zip(heads(prob), about, strict=True)
    table = [line for line in told if len(entries) <= 1 or line[0] in heads(prob)[:3]]
    table += [(name, span(values)) for name, values in parameters.items() if np.size(values)]
    table += [("sds by", sds)] if sds != "q" else []
    first = html_table(("", ""), [line for line in table if line[1]], f"q({about[0]})")
    return first + (html_table(entry_heads(prob), entries) if len(entries) > 1 else "")


def entry_heads(prob: float) -> Row:
    """Return the heads of a table of the entries of one variable."""
    return "entry", *heads(prob)[3:]
