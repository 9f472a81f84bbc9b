"""What was declared: the variables of a model by name, and its dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svmp.errors import EmptyTableError, ModelError
from svmp.network.dims.column_arrays import ModelColumns
from svmp.network.dims.coords import Coords
from svmp.network.dims.frames import columns_of
from svmp.network.validation import shown
from svmp.network.variable import Variable


class Declaration:
    """The variables of a model, in the order of their declaration, and its dims.

    Attributes
    ----------
    coords
        Labels of each dimension, or its size; a read-only mapping.
    """

    def __init__(
        self,
        coords: Mapping[str, int | str | Sequence[Any]] | None = None,
        data: Any = None,
    ) -> None:
        columns = None if data is None else columns_of(data)
        if columns is not None and columns.columns and not len(columns):
            raise EmptyTableError("the data have no rows")
        self.coords = Coords(coords, columns)
        self.variables: dict[str, Variable] = {}

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension."""
        return self.coords.sizes

    @property
    def labels(self) -> dict[str, Sequence[Any]]:
        """Labels along each dimension that has them."""
        return self.coords.labels

    @property
    def data(self) -> ModelColumns:
        """The columns that the model was given: `model.data.price`, `model.data["price"]`."""
        if self.coords.data is None:
            raise ModelError(
                "the model has no data; give a data frame, as in svmp.Model(data=frame)"
            )
        return ModelColumns.of(self.coords.data)

    def add(self, variable: Variable) -> None:
        """Add a variable that was declared without an error.

        From then on, missing values of its parents are hidden variables.
        """
        self.sizes.update(zip(variable.dims, variable.shape, strict=True))
        self.variables[variable.name] = variable
        for parent in variable.conditional.parents():
            self.variables[parent.name].hide_missing()

    def __getitem__(self, name: str) -> Variable:
        if name not in self.variables:
            raise KeyError(f"no variable {shown(name)}; there are {list(self.variables)}")
        return self.variables[name]
