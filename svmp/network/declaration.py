"""What was declared: the variables of a model by name, and its dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svmp.network.coords import Coords
from svmp.network.variable import Variable


class Declaration:
    """The variables of a model, in the order of their declaration, and its dims."""

    def __init__(self, coords: Mapping[str, int | Sequence[Any]] | None = None) -> None:
        self.coords = Coords(coords)
        self.variables: dict[str, Variable] = {}

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension."""
        return self.coords.sizes

    @property
    def labels(self) -> dict[str, Sequence[Any]]:
        """Labels along each dimension that has them."""
        return self.coords.labels

    def __getitem__(self, name: str) -> Variable:
        return self.variables[name]
