"""Random means: one tree of sums and products, as an svmp expression and as plain polynomials.

Axes: p and q are on the plate, k and l are summed over, a and b are only indexed by keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import svmp
from svmp.network.expressions import Expression

from .polynomials import Polynomials, constant, read

PLATE = ("p", "q")
SUMMED = ("k", "l")
KEYED = ("a", "b")


@dataclass
class Mean:
    """A mean as an svmp expression and as polynomials."""

    ours: Expression
    plain: Polynomials
    names: set[str] = field(default_factory=set)

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.ours + other.ours, self.plain + other.plain, self.names | other.names)

    def __mul__(self, other: Mean) -> Mean:
        return Mean(self.ours * other.ours, self.plain * other.plain, self.names | other.names)


class Means:
    """Draws means over some variables.

    Parameters
    ----------
    draw
        The function of Hypothesis.
    sizes
        Size of every axis.
    variables
        Variables that a mean may depend on.
    """

    def __init__(
        self, draw: Callable[..., Any], sizes: dict[str, int], variables: list[svmp.Variable]
    ) -> None:
        self.draw, self.sizes, self.variables = draw, sizes, variables
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def numbers(self, axes: tuple[str, ...]) -> np.ndarray:
        return self.rng.normal(size=tuple(self.sizes[a] for a in axes)).round(2)

    def axes(self, most: int) -> tuple[str, ...]:
        every = st.permutations([*PLATE, *SUMMED])
        return tuple(self.draw(every)[: self.draw(st.integers(1, most))])

    def index(self, dim: str) -> tuple[Any, Any]:
        """Draw the index of one axis of a variable, for svmp and for the polynomials."""
        kind = self.pick(["whole", "key", "key", "number"])
        if kind == "whole" and dim not in KEYED:
            return slice(None), dim
        if kind == "number":
            at = int(self.rng.integers(self.sizes[dim]))
            return at, at
        axes = self.axes(2)
        keys = self.rng.integers(self.sizes[dim], size=tuple(self.sizes[a] for a in axes))
        plain = axes in (("q",), ("p", "q")) and self.draw(st.booleans())
        return (keys if plain else svmp.data(keys, dims=axes)), (axes, keys)

    def leaf(self, variable: svmp.Variable) -> Mean:
        index = [self.index(dim) for dim in variable.dims]
        ours = variable[tuple(i for i, _ in index)] if index else variable
        return Mean(ours, read(variable.name, [i for _, i in index], self.sizes), {variable.name})

    def number(self) -> Mean:
        if self.draw(st.booleans()):
            value = float(self.numbers(()))
            return Mean(_lifted(value), constant(value, (), self.sizes))
        axes = self.axes(2)
        values = self.numbers(axes)
        return Mean(svmp.data(values, dims=axes), constant(values, axes, self.sizes))

    def product(self, variables: list[svmp.Variable], sparse_too: bool) -> Mean:
        """Draw a product of up to three variables, summed over all axes but those of the plate."""
        chosen = self.draw(st.permutations(variables))[: self.draw(st.integers(1, 3))]
        term = self.leaf(chosen[0])
        for variable in chosen[1:]:
            term = term * self.leaf(variable)
        if self.draw(st.booleans()):
            number = self.number()
            term = term * number if self.draw(st.booleans()) else number * term
        return self.closed(term, sparse_too)

    def closed(self, term: Mean, sparse_too: bool) -> Mean:
        """Sum over every axis that is not on the plate, some by a design."""
        over = [a for a in self.draw(st.permutations(SUMMED)) if a in term.plain.axes]
        for dim in over:
            kind = self.pick(["sum", "dense", "sparse" if sparse_too and len(over) == 1 else "sum"])
            if kind == "sum":
                term = Mean(term.ours.sum(dim), term.plain.sum(dim), term.names)
                continue
            values = self.numbers(("q", dim))
            values[self.rng.random(values.shape) < 0.3] = 0.0
            plain = (term.plain * constant(values, ("q", dim), self.sizes)).sum(dim)
            design = sparse.csr_array(values) if kind == "sparse" else values
            ours = svmp.dot(design, term.ours, dim=dim)
            term = Mean(ours, plain, term.names)
        return term

    def tree(self, variables: list[svmp.Variable], depth: int, sparse_too: bool = True) -> Mean:
        kind = self.pick(["product", "plus", "times"]) if depth else "product"
        if kind == "times" and len(variables) > 1:
            cut = self.draw(st.integers(1, len(variables) - 1))
            mixed = self.draw(st.permutations(variables))
            left = self.tree(mixed[:cut], depth - 1, sparse_too=False)
            return left * self.tree(mixed[cut:], depth - 1, sparse_too=False)
        if kind == "plus":
            left = self.tree(variables, depth - 1, sparse_too)
            right = self.tree(variables, depth - 1, sparse_too)
            if self.draw(st.booleans()):
                minus = Mean(-right.ours, right.plain * constant(-1.0, (), self.sizes), right.names)
                return left + minus
            return left + right
        return self.product(variables, sparse_too)

    def mean(self) -> Mean:
        """Draw a mean with axes of the plate only."""
        mean = self.tree(self.variables, depth=2)
        if self.draw(st.booleans()):
            mean = mean + self.tree(self.variables, depth=1)
        if self.draw(st.booleans()):
            values = self.numbers(PLATE)
            mean = mean + Mean(_lifted(values), constant(values, PLATE, self.sizes))
        return mean


def _lifted(value: Any) -> Expression:
    from svmp.network.expressions import lift

    return lift(value)


def rows(mean: Mean) -> list[dict[tuple[Any, ...], float]]:
    """Return the polynomial of every row of the plate, in order."""
    sizes = mean.plain.sizes
    return [mean.plain.at(PLATE, p) for p in product(*(range(sizes[a]) for a in PLATE))]
