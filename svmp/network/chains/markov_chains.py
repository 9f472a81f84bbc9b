"""Declaring chains: `svmp.DiscreteMarkovChain`."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.chains.chain_variable import ChainVariable
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.sequences import read_sequences
from svmp.network.conditional import Conditional
from svmp.network.model import current
from svmp.network.validation import dim_name, text
from svmp.network.variable import Component, Dims


class DiscreteMarkovChain(ChainVariable):
    """A hidden Markov chain of states 0, 1, ... over the rows of a table.

    The first state of each sequence is drawn from `init`, and each later one from the row of `P`
    that belongs to the state before. A `Mixture` with the chain as its z is a hidden Markov model.

    Parameters
    ----------
    name
        Its name.
    init
        Probabilities of the first state: numbers, or a Dirichlet, also one for each sequence or
        read by a key, as `start[group]`.
    P
        Probabilities of the next state: a matrix whose rows add up to 1, or a Dirichlet whose last
        two dims are the state before and the next one; also one for each sequence, or read by a key
        for each row, as `move[hour]`.
    sequence
        The sequence that each row belongs to: numbers, texts or times, or the name of a column of
        the model's data; None for a single sequence.
    order
        A column by which the rows of a sequence are ordered; by default they are in the order of
        the table.
    sequence_dim
        Name of the dimension of the sequences, as for `svmp.Batch(over="sequence")`.
    dims
        The dimension of the rows.

    >>> import svmp
    >>> with svmp.Model(coords={"state": 2, "to": 2, "row": 6}) as model:
    ...     start = svmp.Dirichlet("start", a=1, dims="state")
    ...     move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
    ...     z = svmp.DiscreteMarkovChain("z", init=start, P=move, dims="row")
    ...     rate = svmp.Gamma("rate", alpha=1, beta=0.1, dims="state")
    ...     x = svmp.Mixture(
    ...         "x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=[0, 1, 1, 30, 31, 28]
    ...     )
    >>> states = svmp.fit(model, svmp.FullVB()).mean("z").argmax(axis=1)
    >>> states[0] == states[2] != states[3] == states[5]
    np.True_
    """

    _factor = factors.Categorical()

    def __init__(
        self,
        name: str,
        init: Any,
        P: Any,
        *,
        sequence: ArrayLike | None = None,
        order: ArrayLike | None = None,
        sequence_dim: str = "sequence",
        dims: Dims = None,
    ) -> None:
        model = current(text(name, "a variable's name"))
        given = {"init": init, "P": P, "sequence": sequence, "order": order}
        self._declare(
            model.coords,
            model.free_name(name),
            given | {"sequence_dim": dim_name(sequence_dim)},
            dims,
        )
        model.add(self)

    def _density(self, component: Component, length: int | None, selector: Any) -> Conditional:
        given, dim = self.given, self.given["sequence_dim"]
        if len(self.plate.labels) != 1:
            raise ModelError(f"'{self.name}' must have one dimension, that of its rows")
        if dim == self.plate.labels[0]:
            raise ModelError(
                f"sequence_dim of '{self.name}' is '{dim}', the dimension of its rows; give it "
                "another name"
            )
        found, self._sequence_coord = read_sequences(
            self.name, self.coords, dim, self.plate.size, given["sequence"], given["order"]
        )
        return DiscreteChain(self, given["init"], given["P"], found)
