"""Saving and loading fits: one safetensors file, with arrays and a description in JSON.

A file may be damaged or written by another program, so all of it is checked before use: `ABOUT`
declares the description, and `declared` the arrays, whose shapes must agree with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from svmp import families
from svmp.errors import FileError
from svmp.families.family import Family
from svmp.inference.checkpoints import joint_files
from svmp.inference.checkpoints.trace_schema import trace_names, trace_tensors
from svmp.inference.running.stopping import Status
from svmp.inference.trace import Trace
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.posterior.files import chain_files, drift_files, label_files, response_files
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.restart_record import Restart, Restarts
from svmp.posterior.record.run_record import RunRecord
from svmp.saving.schema import (
    LARGEST,
    Tensor,
    Tensors,
    check_format,
    check_tensors,
    dict_of,
    list_of,
    need,
    number,
    one_of,
    optional,
    proper,
    read_tensors,
    record,
    text,
    truth,
    whole,
)
from svmp.writing import as_path, begins_as, check_place, written_beside

FORMAT = 2
"""2 has the dims of the hidden variables, with labels, and what `Fit.update` needs besides."""
KEY, WHAT, SUFFIX = "svmp", "a fit", ".svmp"
MOST_DIMS = 32
MOST_EMPTY = 2**24
"""Largest size of q for an empty plate, whose arrays cannot confirm the declared sizes."""
VARIABLE = record(
    {
        "family": one_of(*families.__all__),
        "length": whole(high=2**31),
        "dims": list_of(text, MOST_DIMS),
        "plate": list_of(whole(high=2**40), MOST_DIMS),
    }
)
ABOUT = record(
    {
        "format": whole(1, FORMAT),
        "status": one_of(*get_args(Status)),
        "iterations": whole(),
        "accesses": whole(),
        "seconds": number(0),
        "bound_terms": dict_of(number()),
        "diverged_bound": optional(number(infinite=True, nan=True)),
        "remaining": optional(number(0)),
        "variables": dict_of(VARIABLE),
        "columns": trace_names,
        "coords": label_files.COORDS,
        "parents": dict_of(list_of(text)),
        "forgetting": dict_of(number(0, 1)),
        "changed": dict_of(number(0, 1)),
        "drifts": list_of(text),
        "blocks": joint_files.BLOCKS,
        "chains": chain_files.CHAINS,
        "ends": label_files.COORDS,
        "forms": dict_of(dict_of(text)),
        "response": list_of(text),
        "responding": list_of(text),
        "refused": text,
        "restarts": list_of(
            record(
                {
                    "seed": whole(high=2**64),
                    "bound": number(infinite=True),
                    "status": one_of(*get_args(Status)),
                    "sweeps": number(0),
                    "best": truth,
                }
            )
        ),
    }
)
LATER = ("coords", "parents", "forgetting", "changed")
"""Entries that files of format 1 do not have."""


def write(fit: RunRecord, path: str | os.PathLike[str]) -> None:
    """Write a fit to a file atomically; an existing file is replaced only if it is a fit."""
    target = as_path(path)
    check_place(target, is_fit, WHAT)
    tensors: Tensors = {f"trace/{c}": array for c, array in fit.trace.to_dict().items()}
    variables = {}
    for name, q in fit.posteriors.items():
        tensors[f"natural/{name}"] = np.ascontiguousarray(q.natural)
        if "n" in q.family.parameters:
            tensors[f"trials/{name}"] = q.parameters["n"].ravel()
        if isinstance(q.family, PartlyKnown):
            tensors[f"known/{name}"] = q.family.known.astype(np.float64)
            values = np.ascontiguousarray(q.family.certain, dtype=np.float64)
            tensors[f"values/{name}"] = values
        family, length = type(base_of(q.family)).__name__, _length(q)
        variables[name] = {"family": family, "length": length, "dims": q.dims, "plate": q.plate}
    coords, labels = label_files.pack(fit.coords)
    tensors |= labels
    about = {
        "format": FORMAT,
        "status": fit.status,
        "iterations": fit.iterations,
        "accesses": fit.accesses,
        "seconds": fit.seconds,
        "bound_terms": {name: float(term) for name, term in fit.bound_terms.items()},
        "variables": variables,
        "columns": fit.trace.columns,
        "coords": coords,
        "parents": fit.parents,
        "forgetting": fit.forgetting,
        "changed": fit.changed,
    }
    chains, arrays = chain_files.pack(fit.posteriors)
    if chains:
        about["chains"] = chains
        tensors |= arrays
    if fit.ends:
        about["ends"], ends = chain_files.pack_ends(fit.ends)
        tensors |= ends
    if fit.remaining is not None:
        about["remaining"] = fit.remaining
    if fit.diverged_bound is not None:
        about["diverged_bound"] = fit.diverged_bound
    if fit.drifts:
        about["drifts"] = list(fit.drifts)
        tensors |= drift_files.pack(fit.drifts)
    if fit.forms:
        about["forms"] = fit.forms
    if fit.restarts is not None:
        about["restarts"] = [asdict(start) for start in fit.restarts]
    if fit.joint:
        about["blocks"], blocks = joint_files.pack(fit.joint)
        tensors |= blocks
    if fit.response is not None:
        about["response"], matrix = response_files.pack(fit.response)
        tensors |= matrix
    if fit.responding:
        about["responding"] = list(fit.responding)
    if fit.refused:
        about["refused"] = fit.refused
    try:
        with written_beside(target) as draft:
            save_file(tensors, draft, metadata={KEY: json.dumps(about)})
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be written ({error})") from None


def is_fit(path: Path) -> bool:
    """Return whether a file is a fit by its suffix or its first bytes; it may be damaged."""
    return path.suffix == SUFFIX or begins_as(path, KEY)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a saved fit."""
    try:
        about, tensors = read_tensors(as_path(path), KEY, "one that svmp saved")
        check_format(about, FORMAT, "a file that svmp saved")
        if about["format"] == 1:
            about = {**{key: {} for key in LATER}, **about}
        none: dict[str, Any] = {"blocks": [], "chains": {}, "ends": {}, "forms": {}}
        about = {
            **none,
            "drifts": [],
            "restarts": [],
            "response": [],
            "diverged_bound": None,
            "remaining": None,
            "responding": [],
            "refused": "",
            **about,
        }  # only fits that have some have them
        return _fields(ABOUT("description", about), tensors)
    except FileError as error:
        raise FileError(f"{path}: {error}") from None


def _fields(about: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    kinds = {name: _family(name, of, tensors) for name, of in about["variables"].items()}
    found = trace_tensors(about["columns"], tensors)
    for name, of in about["variables"].items():
        found |= declared(name, prod(of["plate"]), kinds[name])
    found |= label_files.declared(about["coords"], tensors)
    found |= joint_files.declared(about["blocks"])
    found |= response_files.declared(about["response"], about["variables"])
    found |= chain_files.declared(about["chains"], about["variables"], tensors)
    found |= chain_files.declared_ends(about["ends"], kinds, tensors)
    found |= drift_files.declared(about["drifts"], about["variables"], kinds)
    check_tensors(tensors, found)
    label_files.check_sizes(about["variables"], about["coords"])
    trace = {column: tensors[f"trace/{column}"].tolist() for column in about["columns"]}
    kept = (
        "status",
        "remaining",
        "diverged_bound",
        "bound_terms",
        "iterations",
        "accesses",
        "seconds",
        *LATER[1:],
    )
    posteriors = {}
    for name, of in about["variables"].items():
        plate, natural = tuple(of["plate"]), tensors[f"natural/{name}"]
        posteriors[name] = Posterior(name, tuple(of["dims"]), plate, kinds[name], natural)
    for name, kind in about["chains"].items():
        posteriors[name] = chain_files.unpack(name, kind, posteriors[name], tensors)
    coords = label_files.unpack(about["coords"], tensors)
    sizes = {name: (len(q.natural), q.family) for name, q in posteriors.items()}
    marginals = {name: q.natural for name, q in posteriors.items()}
    joint = joint_files.unpack(about["blocks"], tensors, sizes, marginals)
    ends = chain_files.unpack_ends(about["ends"], tensors)
    fields: dict[str, Any] = {"trace": Trace(trace), "posteriors": posteriors, "coords": coords}
    fields |= {"joint": joint, "ends": ends}
    fields["response"] = response_files.unpack(about["response"], tensors, posteriors)
    fields |= {"drifts": drift_files.unpack(about["drifts"], tensors)}
    starts = Restarts(Restart(**start) for start in about["restarts"])
    fields |= {"forms": about["forms"], "restarts": starts or None, "refused": about["refused"]}
    unknown = set(about["responding"]) - set(about["variables"])
    need(not unknown, "damaged: there are covariances of unknown variables")
    fields["responding"] = tuple(about["responding"])
    return {**{k: about[k] for k in kept}, **fields}


def _family(name: str, about: dict[str, Any], tensors: Tensors) -> Family:
    """Return the family of a variable, whose size must agree with the dims."""
    dims, plate = about["dims"], about["plate"]
    family: Any = getattr(families, about["family"]).sized(about["length"])
    sound = about["length"] > 0 and len(dims) == len(plate) + family.event_ndim
    sound = sound and (prod(plate) > 0 or prod(n or 1 for n in plate) * family.size <= MOST_EMPTY)
    need(sound, f"damaged: the dims of {name!r:.60} make no sense")
    if "n" in family.parameters:
        need(f"trials/{name}" in tensors, f"damaged: there is no n of {name!r:.60}")
        family = replace(family, trials=tensors[f"trials/{name}"])
    if f"known/{name}" in tensors:
        shape = (prod(plate), *(about["length"],) * family.event_ndim)
        values = tensors.get(f"values/{name}", tensors[f"known/{name}"])
        need(values.shape == shape, f"damaged: there are no values of {name!r:.60}")
        return PartlyKnown(family, tensors[f"known/{name}"] != 0, values)
    return family


def declared(name: str, count: int, family: Any) -> dict[str, Tensor]:
    """Declare the arrays of a variable."""
    found = {}
    if "n" in family.parameters:
        found[f"trials/{name}"] = Tensor((count,), trials_trouble)
    if isinstance(family, PartlyKnown):
        found[f"known/{name}"] = Tensor((count,), flags_trouble)
        found[f"values/{name}"] = Tensor(family.values.shape, possible(family))
    found[f"natural/{name}"] = Tensor((count, family.size), proper(family))
    return found


def flags_trouble(flags: np.ndarray) -> str | None:
    """Refuse values that are neither 0 nor 1."""
    return None if np.isin(flags, (0, 1)).all() else "is neither 0 nor 1"


def possible(family: Family) -> Callable[[np.ndarray], str | None]:
    """Refuse values that a family does not have."""

    def trouble(values: np.ndarray) -> str | None:
        return None if family.in_support(values).all() else "is not a possible value"

    return trouble


def trials_trouble(trials: np.ndarray) -> str | None:
    """Refuse values that are not numbers of trials."""
    sound = (trials >= 0) & (trials <= LARGEST) & (trials == np.floor(trials))
    return None if sound.all() else "is not a number of trials"


def _length(q: Posterior) -> int:
    """Return the length of the variable's vectors, or the number of its categories."""
    mean = q.mean
    return mean.shape[-1] if mean.ndim > len(q.plate) else 1
