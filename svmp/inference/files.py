"""A fit in a file and back: one safetensors file, arrays beside a description in JSON.

What is read may have been damaged or made by another program, so that nothing of it is believed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from svmp import families
from svmp.errors import FileError
from svmp.inference.posterior import Posterior
from svmp.inference.run import Status
from svmp.inference.trace import Trace

if TYPE_CHECKING:
    from svmp.inference.result import Fit

FORMAT = 1
NO_TYPE = (TypeError, AttributeError)
"""What safetensors raises for a number type that NumPy lacks."""
Tensors = dict[str, np.ndarray]


def write(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit to a file, whole or not at all."""
    tensors: Tensors = {f"trace/{c}": array for c, array in fit.trace.to_dict().items()}
    variables = {}
    for name, q in fit.posteriors.items():
        tensors[f"natural/{name}"] = np.ascontiguousarray(q.natural)
        if hasattr(q.family, "trials"):
            tensors[f"trials/{name}"] = q.parameters["n"].ravel()
        family, length = type(q.family).__name__, _length(q)
        variables[name] = {"family": family, "length": length, "dims": q.dims, "plate": q.plate}
    about = {
        "format": FORMAT,
        "status": fit.status,
        "iterations": fit.iterations,
        "accesses": fit.accesses,
        "seconds": fit.seconds,
        "bound_terms": {name: float(term) for name, term in fit.bound_terms.items()},
        "variables": variables,
        "columns": fit.trace.columns,
    }
    target = Path(path)
    draft = target.parent / f"{target.name}.part"
    try:
        save_file(tensors, draft, metadata={"svmp": json.dumps(about)})
        draft.replace(target)
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be written ({error})") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a fit that was saved."""
    try:
        return _fields(*_contents(path))
    except FileError as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{path}: {reason}") from None


def _contents(path: str | os.PathLike[str]) -> tuple[Any, Tensors]:
    """Return the description and the arrays as they are in the file."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("svmp", "null"))
            _need(about is not None, "a safetensors file, but not one that svmp saved")
            return about, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError("there is no such file") from None
    except (SafetensorError, OSError, ValueError, RecursionError, *NO_TYPE) as error:
        raise FileError(f"damaged, or not a file that svmp saved ({error})") from None


def _fields(about: Any, tensors: Tensors) -> dict[str, Any]:
    version = _get(about, "format", int)
    _need(version <= FORMAT, f"format {version}, made by a newer version of svmp")
    status = _get(about, "status", str)
    _need(status in get_args(Status), f"damaged: the status is {status!r:.40}")
    terms, variables = _get(about, "bound_terms", dict), _get(about, "variables", dict)
    return {
        "status": status,
        "bound_terms": {name: _get(terms, name, float) for name in terms},
        "trace": _trace(_get(about, "columns", list), tensors),
        "posteriors": {
            name: _posterior(name, _get(variables, name, dict), tensors) for name in variables
        },
        "iterations": _get(about, "iterations", int),
        "accesses": _get(about, "accesses", int),
        "seconds": _get(about, "seconds", float),
    }


def _trace(columns: list[Any], tensors: Tensors) -> Trace:
    arrays = {str(c): _array(f"trace/{c}", tensors, "int64", "float64") for c in columns}
    _need(all(a.ndim == 1 for a in arrays.values()), "damaged: the trace is not a table")
    _need(len({len(a) for a in arrays.values()}) <= 1, "damaged: the trace is not a table")
    return Trace({column: array.tolist() for column, array in arrays.items()})


def _posterior(name: str, about: dict[str, Any], tensors: Tensors) -> Posterior:
    kind, length = _get(about, "family", str), _get(about, "length", int)
    dims, plate = _get(about, "dims", list), _get(about, "plate", list)
    _need(kind in families.__all__, f"damaged: '{name}' is of the unknown family {kind!r:.40}")
    sound = all(isinstance(d, str) for d in dims) and all(type(n) is int and n >= 0 for n in plate)
    family: Any = getattr(families, kind).sized(length)
    sound &= length >= 0 and len(dims) == len(plate) + family.event_ndim
    _need(sound, f"damaged: the dims of '{name}' make no sense")
    count = prod(plate)
    if hasattr(family, "trials"):
        trials = _array(f"trials/{name}", tensors)
        whole = np.isfinite(trials) & (trials >= 0) & (trials == np.floor(trials))
        _need(trials.shape == (count,) and whole.all(), f"damaged: n of '{name}' makes no sense")
        family = replace(family, trials=trials)
    natural, shape = _array(f"natural/{name}", tensors), (count, family.size)
    _need(natural.shape == shape, f"damaged: q of '{name}' is {natural.shape} instead of {shape}")
    _need(family.in_domain(natural).all(), f"damaged: q of '{name}' is not a proper distribution")
    return Posterior(name, tuple(dims), tuple(plate), family, natural)


def _array(key: str, tensors: Tensors, *kinds: str) -> np.ndarray:
    """Return an array of the file, if it is there and of the right type."""
    _need(key in tensors, f"damaged: there is no array {key!r:.60}")
    array = tensors[key]
    _need(array.dtype in (kinds or ("float64",)), f"damaged: {key!r:.60} is of {array.dtype}")
    return array


def _get(about: Any, key: str, kind: type) -> Any:
    """Return an entry of the description, if it is of the right type."""
    value = about.get(key) if isinstance(about, dict) else None
    _need(type(value) is kind, f"damaged: its {key!r:.40} is not of type {kind.__name__}")
    return value


def _need(holds: Any, otherwise: str) -> None:
    if not holds:
        raise FileError(otherwise)


def _length(q: Posterior) -> int:
    """Return the length of the variable's vectors, or the number of its categories."""
    mean = q.mean
    return mean.shape[-1] if mean.ndim > len(q.plate) else 1
