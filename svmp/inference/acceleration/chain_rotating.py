"""The best linear change of states (chain_rotation.py) applied to q of a network.

It serves chains of vectors with one matrix A that is learned, without inputs, whose states are read
through loadings that are learned, each line of which is an MvNormal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import flat, join
from svmp.inference.acceleration.accelerator import BeforeWholeSweeps
from svmp.inference.acceleration.chain_rotation import (
    Basis,
    Dynamics,
    Lines,
    StateSums,
    StepPrecision,
)
from svmp.inference.starts.loadings import Loadings, loadings_of
from svmp.inference.state.relaxation import Means
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.network.beliefs import Beliefs
from svmp.network.chains import transition
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.chains.transition import Pairs
from svmp.network.matrices import Diagonal
from svmp.network.means.coefficients import MatrixRows
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Single

LARGEST = 32
"""Longest vectors whose states are changed."""
CHUNK = 1 << 13
"""Rows that are changed at a time."""


@dataclass(frozen=True, eq=False)
class ChainRotation(BeforeWholeSweeps):
    """Changes the basis of the states of chains before every sweep over all rows.

    Attributes
    ----------
    loadings
        By chain of vectors, the loadings through which its states are read.
    """

    loadings: dict[str, list[Loadings]]

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        found = rotatable(setup.network, setup.joined)
        return cls(setup.network, setup.method, found) if found else None

    def change(self, q: Beliefs, before: Means) -> None:
        for name, loadings in self.loadings.items():
            rotate_chain(self.network, q, name, loadings)


def rotatable(network: Network, joined: Collection[str] = ()) -> dict[str, list[Loadings]]:
    """Return by chain its loadings, for chains whose states may be changed.

    Variables in `joined` have a joint q with others, and stay as they are.
    """
    found = {}
    for name, chain in network.chains.items():
        lines = loadings_of(network, name) if isinstance(chain, LinearChain) else None
        if lines is None or not isinstance(chain, LinearChain):
            continue
        names = {name, *_dynamics(chain), *(one.variable.name for one in lines)}
        free = not names & {*joined, *network.learned, *network.elsewhere}
        known = any(isinstance(network.hidden[n].family, PartlyKnown) for n in names)
        once = all(len(network.edges[n]) == 1 for n in _dynamics(chain))
        vectors = all(one.vectors for one in lines)
        if free and once and not known and vectors and _is_simple(chain):
            found[name] = lines
    return found


def _dynamics(chain: LinearChain) -> list[str]:
    slots = (chain.slots[name] for name in chain.transition_slots)
    return [v.name for slot in slots for v in slot.variables if v.hidden]


def _is_simple(chain: LinearChain) -> bool:
    A, tau = chain.matrices["A"], chain.slots["tau"]
    plain = not tau.variables or (isinstance(tau, Single) and tau.reader.variable.size == 1)
    if isinstance(tau, Diagonal) and tau.variables:
        entries = tau.entries
        alone = len(entries.readers) == 1 and entries.scale == 1 and not entries.constants
        plain = alone and entries.readers[0].variable.family.precision == "number"
    one = chain.selector is None and chain.group_count == 1 and chain.width == chain.size
    variable = A.reader.variable if isinstance(A, MatrixRows) else None
    rows = variable is not None and variable.hidden and variable.size == chain.size
    return plain and one and rows and 1 <= chain.size <= LARGEST


def rotate_chain(network: Network, q: Beliefs, name: str, loadings: list[Loadings]) -> bool:
    """Change the states of a chain in place, with its loadings and dynamics, if the bound rises."""
    chain = network.chains[name]
    assert isinstance(chain, LinearChain)
    basis = basis_of(network, q, chain, loadings)
    found = None if basis is None else basis.best_change()
    if found is None:
        return False
    change, dynamics = found
    change_states(q, chain, change)
    for one in loadings:
        change_vectors(q, one.variable.name, np.asarray(np.linalg.inv(change), np.float64).T)
    for variable, natural in _written(chain, dynamics).items():
        network.move(q, variable, np.arange(len(natural)), natural)
    q.version += 1
    return True


def basis_of(
    network: Network, q: Beliefs, chain: LinearChain, loadings: list[Loadings]
) -> Basis | None:
    """Return what the bound depends on.

    None if first states have different precisions, or sequences go on from earlier states.
    """
    name, size, present = chain.variable.name, chain.size, network.present[chain.variable.name]
    firsts = chain.sequences.firsts
    firsts = firsts if present is None else firsts[np.isin(firsts, present)]
    if len(chain.entering(q, firsts)[0]):
        return None
    given = chain.start_moments(q, firsts)
    tau = given["tau"][:, :-1].reshape(-1, size, size)
    pairs = Pairs.of(chain.pair_sums(q, present), size, size)
    if not len(firsts) or (tau != tau[:1]).any() or not pairs.number[0] > 0:
        return None
    moments = q.moments[name][firsts]
    pull = np.einsum("ij,nj,nk->ik", tau[0], given["mu"][:, :size], moments[:, :size])
    first = moments[:, size:].sum(axis=0).reshape(size, size)
    rows = chain.variable.size if present is None else len(present)
    sums = StateSums(
        pairs.xx[0], pairs.xr[0], pairs.rr[0], float(pairs.number[0]), first, pull, tau[0], rows
    )
    A = _elements(chain)
    variable = chain.matrices["A"].variables[0].name
    prior = network.priors(q, variable)[A]
    precision = _precision(network, q, chain)
    hidden = [v.name for v in chain.slots["tau"].variables if v.hidden]
    natural = q.natural[hidden[0]] if hidden else np.zeros((0, 2))
    now = Dynamics(q.natural[variable][A], natural)
    return Basis(sums, tuple(_lines(network, q, one) for one in loadings), prior, precision, now)


def _elements(chain: LinearChain) -> Array:
    """Return the element that is each row of A."""
    return chain.matrices["A"].elements(np.zeros(1, dtype=np.int64))[0]


def _precision(network: Network, q: Beliefs, chain: LinearChain) -> StepPrecision:
    slot, size = chain.slots["tau"], chain.size
    first = np.zeros(1, dtype=np.int64)
    known = chain.precision(q, first)[0][0]
    if not any(v.hidden for v in slot.variables):
        return StepPrecision(None, np.zeros((0, 2)), first, known)
    variable = slot.variables[0]
    prior = np.array(network.priors(q, variable.name))
    entries = first
    if isinstance(slot, Diagonal):
        entries = slot.entries.readers[0].element(np.zeros(size, dtype=np.int64), np.arange(size))
    return StepPrecision(variable.family, prior, entries, known)


def _written(chain: LinearChain, dynamics: Dynamics) -> dict[str, Array]:
    """Return the natural parameters of A and tau by variable."""
    A = np.empty_like(dynamics.A)
    A[_elements(chain)] = dynamics.A
    found = {chain.matrices["A"].variables[0].name: A}
    hidden = [v.name for v in chain.slots["tau"].variables if v.hidden]
    return found | dict.fromkeys(hidden, dynamics.tau)


def _lines(network: Network, q: Beliefs, one: Loadings) -> Lines:
    name, size = one.variable.name, one.size
    moments, prior = q.moments[name], network.priors(q, name)
    square = moments[:, size:].reshape(-1, size, size)
    precision = -2 * prior[:, size:].reshape(-1, size, size)
    return Lines(square, moments[:, :size], precision, prior[:, :size])


def change_states(q: Beliefs, chain: LinearChain, change: Array) -> None:
    """Replace q of the states x by that of R x, in place."""
    name, size = chain.variable.name, chain.size
    joint = q.joint[name]
    change_vectors(q, name, change)
    cross = joint["cross"]
    for start in range(0, len(cross), CHUNK):
        cross[start : start + CHUNK] = change @ cross[start : start + CHUNK] @ change.T
    joint["log_det"] -= 2 * float(np.linalg.slogdet(change)[1])
    if "pairs" in joint:
        pairs = Pairs.of(joint["pairs"], size, size)
        xx, xr, rr = (change @ part @ change.T for part in pairs[:3])
        rest = joint["pairs"][:, -2:]
        joint["pairs"] = join(flat(xx), flat(xr), flat(rr), rest)
        assert joint["pairs"].shape[1] == transition.line_size(size, size)


def change_vectors(q: Beliefs, name: str, change: Array) -> None:
    """Replace q of vectors x by that of R x, in place."""
    back = np.linalg.inv(change)
    natural, moments, size = q.natural[name], q.moments[name], len(change)
    for start in range(0, len(natural), CHUNK):
        for array, matrix in ((natural, back.T), (moments, change)):
            some = array[start : start + CHUNK]
            some[:, :size] = some[:, :size] @ matrix.T
            square = some[:, size:].reshape(-1, size, size)
            square = np.swapaxes(square @ matrix.T, 1, 2) @ matrix.T
            some[:, size:] = flat(0.5 * (square + np.swapaxes(square, 1, 2)))
