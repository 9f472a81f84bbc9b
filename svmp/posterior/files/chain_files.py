"""Chains in files: the arrays that determine the joint q of their sequences.

All of it is checked before use, as everything that is read from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from svmp.families import MvNormal
from svmp.families.family import Family
from svmp.network.chains.continuing import Continued, SequenceEnds
from svmp.network.chains.discrete_chain import versions_trouble
from svmp.posterior.files import label_files
from svmp.posterior.marginals.chain_posterior import KEPT, ChainPosterior
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.marginals.vector_chain_posterior import VectorChainPosterior
from svmp.saving.schema import (
    Check,
    Tensor,
    Tensors,
    dict_of,
    finite,
    need,
    one_of,
    proper,
)

ROWS = ("sequence", "order", "group")
VECTORS = ("sequence", "order", "cross")
CHAINS: Check = dict_of(one_of("states", "vectors"))
"""The description of all chains in a file: their kinds."""


def pack(posteriors: Mapping[str, Posterior]) -> tuple[dict[str, str], Tensors]:
    """Return the description and the arrays of the chains among some posteriors."""
    about, tensors = dict[str, str](), dict[str, np.ndarray]()
    for name, q in posteriors.items():
        if isinstance(q, ChainPosterior):
            about[name] = "states"
            found = {**{key: getattr(q, key) for key in ROWS}, **q.joint}
            tensors |= {_key(name, k): np.ascontiguousarray(a) for k, a in found.items()}
        elif isinstance(q, VectorChainPosterior):
            about[name] = "vectors"
            found = {k: getattr(q, k) for k in VECTORS}
            found |= {} if q.continued is None else q.continued.arrays
            tensors |= {_key(name, k): np.ascontiguousarray(a) for k, a in found.items()}
    return about, tensors


def declared(
    kinds: Mapping[str, str], variables: Mapping[str, Any], tensors: Tensors
) -> dict[str, Tensor]:
    """Declare the arrays of chains."""
    found: dict[str, Tensor] = {}
    for name, kind in kinds.items():
        of = variables.get(name, {})
        if kind == "vectors":
            found |= declared_vectors(name, of, tensors)
            continue
        whole = of.get("family") == "Categorical" and len(of["plate"]) == 1
        need(whole, f"damaged: {name!r:.60} is not a chain of states")
        (rows,), states = of["plate"], of["length"]
        shapes = {k: tensors[_key(name, k)].shape for k in KEPT if _key(name, k) in tensors}
        versions, groups = (*shapes.get("transition", ()), 0, 0)[:2]
        count = (*shapes.get("version", ()), 0)[0]
        found |= {
            _key(name, "sequence"): Tensor((rows,), below(count), ("int64",)),
            _key(name, "order"): Tensor((rows,), below(rows), ("int64",)),
            _key(name, "group"): Tensor((rows,), below(groups), ("int64",)),
            _key(name, "version"): Tensor((count,), below(versions), ("int64",)),
            _key(name, "potential"): Tensor((rows, states), finite),
            _key(name, "transition"): Tensor((versions, groups, states, states), versions_trouble),
        }
    return found


def declared_vectors(name: str, of: Mapping[str, Any], tensors: Tensors) -> dict[str, Tensor]:
    """Declare the arrays of a chain of vectors."""
    whole = of.get("family") == "MvNormal" and len(of["plate"]) == 1
    need(whole, f"damaged: {name!r:.60} is not a chain of vectors")
    (rows,), size = of["plate"], of["length"]
    found = {
        _key(name, "sequence"): Tensor((rows,), below(rows), ("int64",)),
        _key(name, "order"): Tensor((rows,), below(rows), ("int64",)),
        _key(name, "cross"): Tensor((rows, size, size), finite),
    }
    on = tensors.get(_key(name, "continues"))
    if on is not None:
        family = MvNormal(size)
        found[_key(name, "continues")] = Tensor((on.size,), numbers_trouble, ("int64",))
        found[_key(name, "before")] = Tensor((on.size, family.size), proper(family))
    return found


def numbers_trouble(array: np.ndarray) -> str | None:
    """Refuse numbers of sequences that are negative or not in ascending order."""
    sound = (array >= 0).all() and (np.diff(array) > 0).all()
    return None if sound else "has numbers out of range"


def pack_ends(ends: Mapping[str, SequenceEnds]) -> tuple[dict[str, Any], Tensors]:
    """Return the description and the arrays of the last states of sequences."""
    about, tensors = label_files.pack(
        {_key(n, "ends"): len(e.natural) if e.labels is None else e.labels for n, e in ends.items()}
    )
    natural = {_key(name, "ends"): np.ascontiguousarray(e.natural) for name, e in ends.items()}
    return dict(zip(ends, about.values(), strict=True)), tensors | natural


def declared_ends(
    about: Mapping[str, Any], families: Mapping[str, Family], tensors: Tensors
) -> dict[str, Tensor]:
    """Declare the arrays of the last states of sequences."""
    found = label_files.declared({_key(name, "ends"): of for name, of in about.items()}, tensors)
    for name, of in about.items():
        need(name in families, f"damaged: the sequences of {name!r:.60} have no rows")
        family = families[name]
        found[_key(name, "ends")] = Tensor((of["size"], family.size), proper(family))
    return found


def unpack_ends(about: Mapping[str, Any], tensors: Tensors) -> dict[str, SequenceEnds]:
    """Return the last states of sequences, from arrays as declared."""
    labels = label_files.unpack({_key(name, "ends"): of for name, of in about.items()}, tensors)
    return {
        name: SequenceEnds(None if isinstance(known, int) else known, tensors[_key(name, "ends")])
        for name in about
        for known in [labels[_key(name, "ends")]]
    }


def unpack(
    name: str, kind: str, posterior: Posterior, tensors: Tensors
) -> ChainPosterior | VectorChainPosterior:
    """Return the posterior of a chain whose arrays were checked one by one."""
    sequence, order = (tensors[_key(name, key)] for key in ("sequence", "order"))
    once = np.bincount(order, minlength=len(order)).max(initial=1) == 1
    sorted_ = bool((np.diff(sequence[order]) >= 0).all())
    need(once and sorted_, f"damaged: the rows of {name!r:.60} are in no order")
    q = posterior
    if kind == "vectors":
        cross, on = tensors[_key(name, "cross")], tensors.get(_key(name, "continues"))
        count = int(sequence.max(initial=-1)) + 1
        need(on is None or on.max(initial=-1) < count, f"damaged: the sequences of {name!r:.60}")
        before = None if on is None else Continued(on, tensors[_key(name, "before")])
        return VectorChainPosterior(
            q.name, q.dims, q.plate, q.family, q.natural, sequence, order, cross, before
        )
    joint, group = {key: tensors[_key(name, key)] for key in KEPT}, tensors[_key(name, "group")]
    return ChainPosterior(
        q.name, q.dims, q.plate, q.family, q.natural, sequence, order, group, joint
    )


def below(size: int) -> Callable[[np.ndarray], str | None]:
    """Refuse numbers that are not at least 0 and less than a size."""

    def trouble(array: np.ndarray) -> str | None:
        return None if ((array >= 0) & (array < size)).all() else "has numbers out of range"

    return trouble


def _key(name: str, array: str) -> str:
    return f"chain-{array}/{name}"
