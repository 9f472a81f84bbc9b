"""Chains in files: the arrays that determine the joint q of their sequences.

All of it is checked before use, as everything that is read from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from svmp.inference.chain_posterior import KEPT, ChainPosterior
from svmp.inference.posterior import Posterior
from svmp.inference.schema import Check, Tensor, Tensors, dict_of, finite, need, one_of
from svmp.inference.vector_chain_posterior import VectorChainPosterior
from svmp.network.discrete_chain import versions_trouble

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
            tensors |= {_key(name, k): np.ascontiguousarray(getattr(q, k)) for k in VECTORS}
    return about, tensors


def declared(
    kinds: Mapping[str, str], variables: Mapping[str, Any], tensors: Tensors
) -> dict[str, Tensor]:
    """Declare the arrays of chains."""
    found: dict[str, Tensor] = {}
    for name, kind in kinds.items():
        of = variables.get(name, {})
        if kind == "vectors":
            found |= declared_vectors(name, of)
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


def declared_vectors(name: str, of: Mapping[str, Any]) -> dict[str, Tensor]:
    """Declare the arrays of a chain of vectors."""
    whole = of.get("family") == "MvNormal" and len(of["plate"]) == 1
    need(whole, f"damaged: {name!r:.60} is not a chain of vectors")
    (rows,), size = of["plate"], of["length"]
    return {
        _key(name, "sequence"): Tensor((rows,), below(rows), ("int64",)),
        _key(name, "order"): Tensor((rows,), below(rows), ("int64",)),
        _key(name, "cross"): Tensor((rows, size, size), finite),
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
        cross = tensors[_key(name, "cross")]
        return VectorChainPosterior(
            q.name, q.dims, q.plate, q.family, q.natural, sequence, order, cross
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
