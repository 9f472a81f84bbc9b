"""Fingerprints of a model and its data, by which the checkpoint of another model is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from svmp.network.chains.chain import Chain
from svmp.network.expressions import DiagonalMatrix, Expression
from svmp.network.grid import Labelled
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.variable import Variable


def describe(network: Network) -> dict[str, dict[str, str]]:
    """Return a description and a data fingerprint of each variable."""
    variables = (*network.hidden.values(), *network.observed.values())
    found = {v.name: describe_variable(v) for v in variables}
    for name, learned in network.learned.items():
        found[name]["earlier rows"] = fingerprint([learned])
    for name, on in network.continued.items():
        found[name]["earlier states"] = fingerprint(on)
    return found


def describe_variable(variable: Variable) -> dict[str, str]:
    """Return the density, the dims and a fingerprint of the arrays of a variable."""
    sizes = zip(variable.dims, variable.shape, strict=True)
    chain = variable.conditional
    order = [chain.sequences.code, chain.sequences.order] if isinstance(chain, Chain) else []
    return {
        "density": variable.conditional.title,
        "dims": ", ".join(f"{d}: {n}" for d, n in sizes),
        "parents": ", ".join(p.name for p in variable.conditional.parents()),
        "data": fingerprint([*data_of(variable), *order]),
        "parameters": fingerprint(variable.conditional.parameters.values()),
    }


def data_of(variable: Variable) -> list[Any]:
    """Return the observed values of a variable, and where they are."""
    if isinstance(variable.family, PartlyKnown):
        return [variable.family.values[variable.family.known], variable.family.known]
    return [variable.observed, variable.rows]


def fingerprint(values: Any) -> str:
    """Return a short hash of arrays and of the arrays in expressions."""
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays_in(values):
        digest.update(str((array.shape, array.dtype.kind)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def arrays_in(values: Any) -> Iterator[np.ndarray]:
    """Yield every array of numbers in some parameters."""
    for value in values:
        if isinstance(value, DiagonalMatrix):
            value = value.entries
        if isinstance(value, Labelled):
            value = value.values
        if value is None:
            continue
        if isinstance(value, Expression):
            for term in value.terms:
                yield np.asarray(term.scale)
                yield from arrays_in([*term.constants, term.design])
                yield from arrays_in(
                    np.asarray(i) if isinstance(i, int) else i
                    for o in term.operands
                    for i in o.index
                    if not isinstance(i, str)
                )
        elif sparse.issparse(value):
            yield from (value.data, value.indices, value.indptr)
        else:
            yield np.asarray(value)
