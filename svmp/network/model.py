"""A model: the variables that were declared in its `with` block, and the sizes of its dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.validation import dim_name, shown, text

if TYPE_CHECKING:
    from svmp.network.drawing import Drawing
    from svmp.network.variable import Variable

_open: ContextVar[tuple[Model, ...]] = ContextVar("svmp_models", default=())


class Model:
    """A Bayesian network under construction.

    Parameters
    ----------
    coords
        Size of each dimension, or the labels along it.

    >>> import svmp
    >>> with svmp.Model(coords={"coin": 3}) as model:
    ...     p = svmp.Beta("p", alpha=1, beta=1, dims="coin")
    ...     heads = svmp.Binomial("heads", n=10, p=p, dims="coin", observed=[3, 5, 9])
    >>> list(model.variables)
    ['p', 'heads']
    """

    def __init__(self, coords: Mapping[str, int | Sequence[Any]] | None = None) -> None:
        self.sizes: dict[str, int] = {}
        self.labels: dict[str, Sequence[Any]] = {}
        self.variables: dict[str, Variable] = {}
        self._tokens: list[Token[tuple[Model, ...]]] = []
        self._keys: list[NDArray[Any]] = []
        if not isinstance(coords, Mapping | None):
            raise ModelError(
                f"coords must map each dimension to its size or labels, not be {shown(coords)}"
            )
        for dim, extent in (coords or {}).items():
            self._extend(dim_name(dim), extent)

    def _extend(self, dim: str, extent: Any) -> None:
        """Take in a dimension by its size or its labels."""
        if isinstance(extent, int | np.integer) and not isinstance(extent, bool):
            if not 0 <= extent < 2**63:
                what = "a negative" if extent < 0 else "too large a"
                raise ModelError(f"dimension '{dim}' has {what} size, {shown(extent)}")
            self.sizes[dim] = int(extent)
            return
        try:
            if isinstance(extent, bool | str | bytes | Mapping):
                raise TypeError
            labels = list(extent)
        except Exception:  # whatever going through it says
            raise ModelError(
                f"dimension '{dim}' needs a size or a list of labels, not {shown(extent)}"
            ) from None
        places: dict[Any, int] = {}
        for place, label in enumerate(labels):
            try:
                first = places.setdefault(label, place)
            except TypeError:  # it cannot be a key of a dict
                first = places.setdefault(repr(label), place)
            if first != place:
                raise ModelError(
                    f"dimension '{dim}' has the label {shown(label)} at {first} and at "
                    f"{place}; give each place another label, or the size {len(labels)} alone"
                )
        self.labels[dim], self.sizes[dim] = labels, len(labels)

    def __enter__(self) -> Model:
        self._tokens.append(_open.set((*_open.get(), self)))
        return self

    def __exit__(self, *exc: object) -> None:
        _open.reset(self._tokens.pop())

    def free_name(self, name: str) -> str:
        """Return the name if no other variable has it."""
        if text(name, "a variable's name") in self.variables:
            raise ModelError(f"the name '{name}' is taken by another variable of this model")
        return name

    def kept(self, key: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an index, the same one for all that hold the same numbers."""
        for known in self._keys:
            if known.dtype == key.dtype and np.array_equal(known, key):
                return known
        self._keys.append(key.copy())
        return self._keys[-1]

    def shape(
        self, name: str, dims: tuple[str, ...], observed: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """StepContext up the sizes of dims; an observed array gives those not known so far."""
        if observed is not None and len(observed) != len(dims):
            raise ModelError(
                f"'{name}' has dims {dims} but its observed values have shape {observed}"
            )
        sizes = []
        for axis, dim in enumerate(dims):
            if dim not in self.sizes and observed is None:
                raise ModelError(
                    f"dimension '{dim}' of '{name}' has no size; add it to the model's coords"
                )
            size = self.sizes[dim] if observed is None else self.sizes.get(dim, observed[axis])
            if observed is not None and observed[axis] != size:
                raise ModelError(
                    f"the observed values of '{name}' have length {observed[axis]} along '{dim}', "
                    f"which has size {size}"
                )
            sizes.append(size)
        return tuple(sizes)

    def add(self, variable: Variable) -> None:
        """Take in a variable that was declared without fault."""
        self.sizes.update(zip(variable.dims, variable.shape, strict=True))
        self.variables[variable.name] = variable

    def draw(self) -> Drawing:
        """Draw the network with its plates.

        >>> import svmp
        >>> with svmp.Model() as model:
        ...     p = svmp.Beta("p", alpha=1, beta=1)
        ...     x = svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
        >>> print(model.draw().mermaid.splitlines()[1])
          v0("p ~ Beta")
        """
        from svmp.network.drawing import draw

        return draw(self)

    def __str__(self) -> str:
        from svmp.network.summary import summarise

        return summarise(self)

    def __repr__(self) -> str:
        return f"<Model of {', '.join(self.variables) or 'nothing yet'}>"

    def __getitem__(self, name: str) -> Variable:
        return self.variables[name]


def current(name: str) -> Model:
    """Return the innermost open model."""
    models = _open.get()
    if not models:
        raise ModelError(f"'{name}' is declared outside of a model; use `with svmp.Model():`")
    return models[-1]
