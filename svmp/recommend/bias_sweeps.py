"""Sweeps over the network of ratings without factors: r = a_user + b_item + noise.

The loops of the engine serve any mean: they take long to compile, and are slower than the sums
here, for which a row reads one line of the other side. With x_e = r_e - E[b] of its item, the
update of a user's bias needs sum w_e and sum w_e x_e, and that of the noise E[(r_e - a - b)^2]:

    sum x_e^2 - 2 E[a] sum x_e + n (E[a]^2 + Var[a]) + sum Var[b],

where the sums over a user's rows are those that the next update of its bias needs. All updates are
those of inference/engine.py, in the same order: the level of the noise, means, other precisions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.fitting.online import Online
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.kernels.machine.compiling import CHUNK, claim, shared
from svmp.kernels.machine.sorting import read_only, take
from svmp.kernels.machine.threads import share, use_threads
from svmp.kernels.vectors.means import Singles
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.recommend.mean_sweeps import SortedPairs


@shared
def sum_rows(
    taken: Ints, begin: Ints, other: NDArray[np.int32], target: Singles, lines: Array, out: Array
) -> None:
    """Write sum w, sum w x, sum w x^2 and sum w v of the rows of each key, with x = r - m.

    Lines are m, v and w of the other side.
    """
    first = claim(taken, CHUNK)
    while first < len(out):
        for key in range(first, min(first + CHUNK, len(out))):
            weights = pulls = squares = spread = 0.0
            for e in range(begin[key], begin[key + 1]):
                line = lines[np.uintp(other[e])]
                x, w = target[e] - line[0], line[2]
                weights += w
                pulls += w * x
                squares += w * x * x
                spread += w * line[1]
            out[key, 0], out[key, 1], out[key, 2], out[key, 3] = weights, pulls, squares, spread
        first = claim(taken, CHUNK)


@dataclass
class BiasSweeps(Online):
    """Online inference on networks of biases.

    Attributes
    ----------
    pairs
        The users and items of the rows, sorted by either.
    """

    pairs: SortedPairs | None = None
    _values: NDArray[np.float32] | None = field(default=None, repr=False)
    _target: dict[str, Singles] = field(default_factory=dict, repr=False)
    _of_users: Array | None = field(default=None, repr=False)

    def _iterate(self, model: Model | Network) -> None:
        """Update every hidden variable of a network with the same rows as the last."""
        network = model if isinstance(model, Network) else Network(model)
        with np.errstate(all="ignore"), use_threads(self.threads, self.tell):
            if self.state is None:
                self.state = State(start(network, self.seed, self.init))
            self._read(network)
            self._sweep(network, self.state.q)
        self.state = replace(self.state, iteration=self.state.iteration + 1)
        self._hidden = network.hidden

    def _read(self, network: Network) -> None:
        """Sort the ratings, if they are not those of the last iteration."""
        values, pairs = network.observed["r"].observed, self.pairs
        assert values is not None
        assert pairs is not None
        if self._values is not values:
            self._values, self._of_users = values, None
            self._target = {
                side: read_only(take(values, order, np.float32))
                for side, order in pairs.order.items()
            }

    def _sweep(self, network: Network, q: Beliefs) -> None:
        if "level" in network.hidden:
            _move(network, q, "level", _from_hidden(network, q, "level"))
        users = self._of_users
        if users is None:
            users = self._sums("u", _line(q, "b", np.ones(1)))
        _move(network, q, "a", _to_bias(users * q.moments["noise"][:, :1]))
        _move(network, q, "b", _to_bias(self._sums("v", _line(q, "a", q.moments["noise"][:, 0]))))
        self._of_users = self._sums("u", _line(q, "b", np.ones(1)))
        told = _to_noise(self._of_users, q.moments["a"], network.hidden["noise"].size)
        _move(network, q, "noise", told)
        for name in ("of_a", "of_b"):
            _move(network, q, name, _from_hidden(network, q, name))

    def _sums(self, side: str, lines: Array) -> Array:
        """Return the sums over the rows of each user, "u", or item, "v"."""
        assert self.pairs is not None
        begin = self.pairs.begin[side]
        out = np.empty((len(begin) - 1, 4))
        share(sum_rows, begin, self.pairs.other[side], self._target[side], lines, out)
        return out


def _move(network: Network, q: Beliefs, name: str, told: Array) -> None:
    """Update a variable, given the sum of the messages of its children."""
    natural = network.priors(q, name) + told
    network.move(q, name, np.arange(len(natural)), natural)


def _line(q: Beliefs, name: str, weight: Array) -> Array:
    """Return mean, variance and weight of each bias."""
    mean, second = q.moments[name].T
    return np.column_stack([mean, second - mean**2, np.broadcast_to(weight, len(mean))])


def _to_bias(sums: Array) -> Array:
    """Return the sum of the messages to biases: (tau mu, -tau / 2)."""
    return np.column_stack([sums[:, 1], -sums[:, 0] / 2])


def _to_noise(sums: Array, moments: Array, size: int) -> Array:
    """Return the sum of the messages to the precisions of users, or to the one of all."""
    count, pulls, squares, spread = sums.T
    mean, second = moments.T
    losses = squares - 2 * mean * pulls + count * second + spread
    told = np.column_stack([-losses / 2, count / 2])
    return told if size == len(told) else told.sum(axis=0, keepdims=True)


def _from_hidden(network: Network, q: Beliefs, name: str) -> Array:
    """Return the sum of the messages of hidden children to the only element of a variable."""
    (edge,) = network.edges[name]
    child = edge.conditional.variable
    present = network.present[child.name]
    elements, rows = edge.pairs_in(np.arange(child.size) if present is None else present)
    return edge.message(q, np.arange(1), elements, rows)
