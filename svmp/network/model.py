"""A model: the variables that were declared in its `with` block, and its dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NoReturn

from svmp.errors import ModelError
from svmp.network.declaration import Declaration
from svmp.network.drawing import Drawing, draw
from svmp.network.keywords import known_keywords
from svmp.network.other_names import OF_MODEL, refuse_attribute
from svmp.network.redeclaring import redeclare
from svmp.network.summary import HEADS, rows_of, summarise
from svmp.network.tables import html_table
from svmp.network.validation import text

_open: ContextVar[tuple[Model, ...]] = ContextVar("svmp_models", default=())


class Model(Declaration):
    """A Bayesian network under construction.

    Parameters
    ----------
    coords
        Size of each dimension, or the labels along it; with data, also the name of the column whose
        distinct values are the labels.
    data
        A data frame of pandas, Polars or PyArrow, or arrays by name. Its columns are arrays of
        `model.data`, as `model.data.price`, and `observed=` accepts their names. A dimension that
        is named as a column, and is not in coords, has its distinct values as labels.

    >>> import svmp
    >>> with svmp.Model(coords={"coin": 3}) as model:
    ...     p = svmp.Beta("p", alpha=1, beta=1, dims="coin")
    ...     heads = svmp.Binomial("heads", n=10, p=p, dims="coin", observed=[3, 5, 9])
    >>> list(model.variables)
    ['p', 'heads']
    """

    @known_keywords
    def __init__(
        self,
        coords: Mapping[str, int | str | Sequence[Any]] | None = None,
        *,
        data: Any = None,
    ) -> None:
        super().__init__(coords, data)
        self._tokens: list[Token[tuple[Model, ...]]] = []

    def __enter__(self) -> Model:
        self._tokens.append(_open.set((*_open.get(), self)))
        return self

    def __exit__(self, *exc: object) -> None:
        _open.reset(self._tokens.pop())

    def free_name(self, name: str) -> str:
        """Return a variable's name, or refuse it if another variable has it."""
        if text(name, "a variable's name") in self.variables:
            raise ModelError(f"the name '{name}' is taken by another variable of this model")
        return name

    def with_data(
        self, *, coords: Mapping[str, int | Sequence[Any]] | None = None, **values: Any
    ) -> Model:
        """Return the same network with other data, of other sizes too; this model stays as it is.

        Parameters
        ----------
        coords
            New sizes or labels of dims. Sizes follow from the values where these have the dim.
        values
            By name, new values of a `svmp.data(..., name=)`, of a column of the model's data, or of
            an observed variable, missing where they are NaN or masked; None leaves a variable
            hidden. What was computed from columns row by row is computed anew.

        >>> import svmp
        >>> with svmp.Model() as model:
        ...     slope = svmp.Normal("slope", mu=0, tau=1)
        ...     x = svmp.data([1.0, 2.0, 3.0], dims="row", name="x")
        ...     y = svmp.Normal("y", mu=slope * x, tau=4, dims="row", observed=[2.0, 3.0, 7.0])
        >>> fit = svmp.fit(model)
        >>> fit.predict(model.with_data(x=[4.0, 5.0], y=None), "y").mean.round(2)
        array([ 8.14, 10.18])
        """
        return redeclare(self, Model(), values, coords)

    def draw(self) -> Drawing:
        """Draw the network with its plates.

        >>> import svmp
        >>> with svmp.Model() as model:
        ...     p = svmp.Beta("p", alpha=1, beta=1)
        ...     x = svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
        >>> print(model.draw().mermaid.splitlines()[1])
          v0("p ~ Beta")
        """
        return draw(list(self.variables.values()))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            refuse_attribute(self, OF_MODEL, name)

    def __str__(self) -> str:
        return summarise(self)

    def _repr_html_(self) -> str:
        return html_table(HEADS, rows_of(self))

    def __repr__(self) -> str:
        return f"<Model of {', '.join(self.variables) or 'nothing yet'}>"


def current(name: str) -> Model:
    """Return the innermost open model."""
    models = _open.get()
    if not models:
        raise ModelError(f"'{name}' is declared outside of a model; use `with svmp.Model():`")
    return models[-1]
