"""What chains have in common as variables of a model: how they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from svmp.factors.factor import Factor
from svmp.network.dims.coords import Coords
from svmp.network.variable import Component, Dims, Variable


class ChainVariable(Variable):
    """A chain over the rows of a table.

    Attributes
    ----------
    given
        By name, the parameters as they were given; `sequence_dim` among them.
    """

    given: dict[str, Any]
    _factor: Factor
    _sequence_coord: list[Any] | int

    def _declare(self, coords: Coords, name: str, given: dict[str, Any], dims: Dims) -> None:
        """Declare the chain, and the dimension of its sequences."""
        self.given = given
        super().__init__(coords, name, Component(self._factor, {}), dims)
        coords.add(given["sequence_dim"], self._sequence_coord)

    def with_parameters(self, coords: Coords, write: Callable[[Any], Any]) -> Self:
        """Return the same chain of another model, whose parameters are written anew.

        Numbers stay as they were, and so do `sequence`, `order` and other arrays of rows: they are
        refused where the number of rows has changed.
        """
        other = type(self).__new__(type(self))
        given = {name: write(value) for name, value in self.given.items()}
        other._declare(coords, self.name, given, self.dims)
        return other
