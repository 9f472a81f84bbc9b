"""Joint blocks in files: the precision matrix of each, as the arrays of a sparse matrix.

All of it is checked before use, as everything that is read from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from svmp.errors import FileError
from svmp.factors.factor import positive
from svmp.families.family import Array, Family
from svmp.inference.gaussian.analysis import SMALL
from svmp.inference.gaussian.factor import Factor
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.gaussian.system import System
from svmp.inference.updaters.joint_block import LARGEST
from svmp.network.grid import Ints
from svmp.network.joint_normal import JointNormal, Layout, Paired
from svmp.saving.schema import (
    NEAR,
    Check,
    Tensor,
    Tensors,
    anything,
    dict_of,
    finite,
    list_of,
    need,
    number,
    optional,
    record,
    text,
    whole,
)

FIELDS: Check = record(
    {
        "names": list_of(text),
        "pair": optional(text),
        "barren": number(),
        "unknowns": whole(1),
        "entries": whole(1),
        "left_out": dict_of(text),
    }
)


def block(name: str, value: Any) -> Any:
    """A block; earlier files do not say what was left out of it."""
    return FIELDS(name, {"left_out": {}, **value} if type(value) is dict else value)


BLOCKS = list_of(block)
"""The description of all blocks in a file."""
SYMMETRIC = 1e-9
"""Largest difference of a precision matrix from its transpose, relative to its size."""


def pack(blocks: Sequence[JointPosterior | JointNormal]) -> tuple[list[dict[str, Any]], Tensors]:
    """Return the description and the arrays of blocks."""
    about, tensors = [], dict[str, np.ndarray]()
    for number_, block in enumerate(blocks):
        factor = block.covariance
        assert isinstance(factor, Factor)
        scale, shift = np.ones(factor.analysis.size), np.zeros(factor.analysis.size)
        if isinstance(block, JointPosterior):
            scale, shift = block.scale, block.shift
        elif factor.scale is not None:  # apart from the matrix, so that a resumed run has its bits
            scale, factor = factor.scale, factor.unscaled
        precision, order = factor.precision, np.full(factor.analysis.size, -1, dtype=np.int64)
        order[factor.analysis.order[: factor.sparse]] = np.arange(factor.sparse)
        found = {
            "values": np.ascontiguousarray(precision.data, dtype=np.float64),
            "columns": precision.indices.astype(np.int64),
            "starts": precision.indptr.astype(np.int64),
            "groups": order,
            "scale": scale,
            "shift": shift,
        }
        if block.pair is not None:
            found["classes"] = block.pair.classes
        tensors |= {key(number_, kind): array for kind, array in found.items()}
        names, entries = list(block.layout.names), len(precision.data)
        sizes = {"unknowns": len(order), "entries": entries}
        pair = None if block.pair is None else block.pair.name
        left_out = dict(getattr(block, "left_out", {}))
        about.append(
            {
                "names": names,
                "pair": pair,
                "barren": float(block.barren),
                "left_out": left_out,
                **sizes,
            }
        )
    return about, tensors


def key(block: int, kind: str) -> str:
    """Return the name of an array in a file."""
    return f"block{block}/{kind}"


def declared(about: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Declare the arrays of blocks."""
    found = {}
    for block, of in enumerate(about):
        size, count = of["unknowns"], of["entries"]
        found[key(block, "values")] = Tensor((count,), finite)
        found[key(block, "columns")] = Tensor((count,), anything, ("int64",))
        found[key(block, "starts")] = Tensor((size + 1,), anything, ("int64",))
        found[key(block, "groups")] = Tensor((size,), anything, ("int64",))
        found[key(block, "scale")] = Tensor((size,), positive_trouble)
        found[key(block, "shift")] = Tensor((size,), finite)
        if of["pair"] is not None:
            found[key(block, "classes")] = Tensor((size,), anything, ("int64",))
    return found


def unpack(
    about: Sequence[Mapping[str, Any]],
    tensors: Tensors,
    families: Mapping[str, tuple[int, Family]],
    natural: Mapping[str, Array],
) -> tuple[JointPosterior, ...]:
    """Return blocks, whose arrays are as declared; refuse what does not make sense.

    Parameters
    ----------
    about, tensors
        The description and the arrays of the file.
    families, natural
        By variable, its number of elements and its family, and its natural parameters, which are
        proper.
    """
    found, seen = [], set[str]()
    for block, of in enumerate(about):
        names = of["names"]
        known = all(type(families.get(n, (0, None))[1]).__name__ in KINDS for n in names)
        need(known and names, "damaged: a joint block has unknown variables")
        need(not seen & set(names) and len(set(names)) == len(names), "damaged: joint blocks meet")
        seen |= set(names)
        arrays = {kind: tensors[key(block, kind)] for kind in ("values", *INTEGERS)}
        layout = Layout.of(
            {n: families[n][0] for n in names},
            {n: families[n][1].length for n in names},
        )
        need(layout.size == of["unknowns"], "damaged: a joint block has another size")
        covariance, pair = factorised(layout, **arrays), None
        if of["pair"] is not None:
            pair = Paired(of["pair"], tensors[key(block, "classes")])
            check_pair(pair, layout, covariance, families)
        moved = tensors[key(block, "scale")], tensors[key(block, "shift")]
        posterior = JointPosterior(layout, covariance, of["barren"], pair, *moved, of["left_out"])
        check_marginals(posterior, {n: families[n][1] for n in names}, natural)
        found.append(posterior)
    return tuple(found)


KINDS = ("Normal", "MvNormal")
PRECISIONS = ("Gamma", "Wishart")
INTEGERS = ("columns", "starts", "groups")


def factorised(layout: Layout, values: Array, columns: Ints, starts: Ints, groups: Ints) -> Factor:
    """Return the covariances of a precision matrix from a file.

    The order of elimination is found again: what a file says of it (the place of each unknown, or
    the group in which it was eliminated, and -1 for those that stay) only has to make sense.
    """
    size, count = layout.size, len(values)
    ordered = starts[0] == 0 and starts[-1] == count and (np.diff(starts) >= 0).all()
    inside = ((columns >= 0) & (columns < size)).all() if count else False
    need(ordered and inside, "damaged: a precision matrix has entries outside of it")
    need(((groups >= -1) & (groups < size)).all(), "damaged: a joint block has unknown groups")
    precision = sparse.csr_array((values, columns, starts), shape=(size, size))
    precision.sum_duplicates()
    lopsided = abs(precision - precision.T).max() if count else 0.0
    need(lopsided <= SYMMETRIC * np.abs(values).max(), "damaged: a precision is not symmetric")
    element = layout.elements()
    variables = [element[layout.places(name)[:, 0]] for name in layout.names]
    system = System.of_matrix(precision, element, variables)
    tail = len(system.analysis.tail)
    need(tail <= max(LARGEST, SMALL), "damaged: a joint block is too large")
    try:
        with np.errstate(all="ignore"):
            return system.factor(system.entries_of(precision))
    except (np.linalg.LinAlgError, ValueError):
        raise FileError("damaged: a precision matrix is not positive definite") from None


def positive_trouble(array: Array) -> str | None:
    """Refuse numbers that are not positive and finite."""
    return None if positive(array) else "has numbers that are not positive"


def check_pair(
    pair: Paired, layout: Layout, covariance: Factor, families: Mapping[str, tuple[int, Family]]
) -> None:
    """Refuse a precision that a block cannot be joint with."""
    size, family = families.get(pair.name, (0, None))
    need(type(family).__name__ in PRECISIONS, "damaged: a joint block has an unknown precision")
    inside = ((pair.classes >= 0) & (pair.classes < size)).all()
    need(inside, "damaged: a joint block has precisions outside of it")
    precision = covariance.precision
    row = np.repeat(np.arange(layout.size), np.diff(precision.indptr))
    same = (pair.classes[row] == pair.classes[precision.indices]) | (precision.data == 0)
    for name in layout.names:
        places = layout.places(name)
        same = same.all() & (pair.classes[places] == pair.classes[places[:, :1]])
        vectors = getattr(family, "dimension", places.shape[1]) == places.shape[1]
        need(vectors, "damaged: a joint block has a precision of another size")
    need(same.all(), "damaged: a joint block has unknowns with two precisions")


def check_marginals(
    joint: JointPosterior, families: Mapping[str, Family], natural: Mapping[str, Array]
) -> None:
    """Refuse a block whose covariances are not those of its variables."""
    for name, family in families.items():
        places = joint.layout.places(name)
        own = family.var(natural[name]).reshape(places.shape)
        flat = places.ravel()
        with np.errstate(all="ignore"):
            found = joint.covariance.entries(flat, flat) * joint.scale[flat] ** 2
            found = found.reshape(places.shape)
            near = np.abs(found - own) <= NEAR * own
        need(near.all(), f"damaged: the covariances of {name!r:.60} are not those of its q")
