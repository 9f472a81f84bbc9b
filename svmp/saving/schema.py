"""Schemas of saved fits and checkpoints, by which files are checked before use.

A file is a safetensors file: arrays, and a description in JSON in its metadata. Both are checked:
each entry of the description by a `Check`, each array by a `Tensor`; others are refused. Compiled
loops do not check array bounds, so all that they read must be checked here.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from svmp.errors import FileError
from svmp.families.family import Array, Family

Tensors = dict[str, np.ndarray]
Check = Callable[[str, Any], Any]
"""Takes the name and the value of an entry of a description; returns the value if it is valid."""

ANY = 2**4096
"""A limit for whole numbers that may be of any size."""
LARGEST = 2**53
"""Whole numbers up to here are exact as floats."""
NEAR = 1e-3
"""Largest relative error of stored moments: compiled loops differ from plain code by rounding."""


def need(holds: Any, otherwise: str) -> None:
    """Refuse a file unless a condition holds."""
    if not holds:
        raise FileError(otherwise)


# --- reading --------------------------------------------------------------------------------


def read_tensors(path: Path, key: str, what: str) -> tuple[Any, Tensors]:
    """Return the description under a key of the metadata, and the arrays, unchecked.

    Parameters
    ----------
    path
        The file.
    key
        The entry of the metadata that holds the description.
    what
        What the file should be, for the message.
    """
    try:
        need(stat.S_ISREG(path.stat().st_mode), f"not {what}, but a folder, a device or a pipe")
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            need(key in metadata, f"a safetensors file, but not {what}")
            about = read_json(metadata[key])
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError("there is no such file") from None
    except (SafetensorError, OSError, ValueError, RecursionError, *NO_TYPE) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"damaged, or not {what} ({reason:.100})") from None


NO_TYPE = (TypeError, AttributeError)
"""What safetensors raises for a number type that NumPy lacks."""


def read_json(text: str) -> Any:
    """Parse JSON without duplicate names.

    >>> read_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    svmp.errors.FileError: damaged: 'a' stands twice in one place
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            need(name not in found, f"damaged: {name!r:.40} stands twice in one place")
            found[name] = value
        return found

    return json.loads(text, object_pairs_hook=once)


# --- descriptions ---------------------------------------------------------------------------


def whole(low: int = 0, high: int = LARGEST) -> Check:
    """A whole number in a range."""

    def check(name: str, value: Any) -> int:
        need(type(value) is int, f"damaged: its {name!r:.60} is not a whole number")
        need(low <= value <= high, f"damaged: its {name!r:.60} is out of range")
        return int(value)

    return check


def number(
    low: float = -math.inf, high: float = math.inf, infinite: bool = False, nan: bool = False
) -> Check:
    """A number in a range; infinity and NaN only if they are allowed."""

    def check(name: str, value: Any) -> float:
        need(type(value) in (int, float), f"damaged: its {name!r:.60} is not a number")
        try:
            size = float(value)
        except OverflowError:  # of a whole number
            size = math.inf if value > 0 else -math.inf
        inside = low <= size <= high and (infinite or abs(size) < math.inf)
        sound = nan if math.isnan(size) else inside
        need(sound, f"damaged: its {name!r:.60} is out of range")
        return value

    return check


def text(name: str, value: Any) -> str:
    """A string."""
    need(type(value) is str, f"damaged: its {name!r:.60} is not a text")
    return str(value)


def truth(name: str, value: Any) -> bool:
    """True or false."""
    need(type(value) is bool, f"damaged: its {name!r:.60} is neither true nor false")
    return bool(value)


def one_of(*choices: str) -> Check:
    """One of some strings."""

    def check(name: str, value: Any) -> str:
        need(type(value) is str and value in choices, f"damaged: its {name!r:.60} is unknown")
        return str(value)

    return check


def optional(check: Check) -> Check:
    """None, or a value that passes another check."""
    return lambda name, value: None if value is None else check(name, value)


def list_of(check: Check, most: int = LARGEST) -> Check:
    """A list of at most `most` entries that all pass one check."""

    def each(name: str, value: Any) -> list[Any]:
        need(type(value) is list, f"damaged: its {name!r:.60} is not a list")
        need(len(value) <= most, f"damaged: its {name!r:.60} is too long")
        return [check(name, entry) for entry in value]

    return each


def entries(*checks: Check) -> Check:
    """A list with an entry for each check."""

    def each(name: str, value: Any) -> list[Any]:
        same = type(value) is list and len(value) == len(checks)
        need(same, f"damaged: its {name!r:.60} is not a list of {len(checks)}")
        return [check(name, entry) for check, entry in zip(checks, value, strict=True)]

    return each


def dict_of(check: Check) -> Check:
    """A dict with any names whose values all pass one check."""

    def each(name: str, value: Any) -> dict[str, Any]:
        need(type(value) is dict, f"damaged: its {name!r:.60} is not a table by name")
        return {key: check(key, entry) for key, entry in value.items()}

    return each


def record(checks: Mapping[str, Check]) -> Check:
    """A dict with exactly these names."""

    def each(name: str, value: Any) -> dict[str, Any]:
        need(type(value) is dict, f"damaged: its {name!r:.60} is not a table by name")
        for key in (*checks, *value):
            need(key in value, f"damaged: it has no {key!r:.60}")
            need(key in checks, f"damaged: it has an unknown {key!r:.60}")
        return {key: check(key, value[key]) for key, check in checks.items()}

    return each


def check_format(about: Any, newest: int, what: str) -> None:
    """Refuse a description without a format, or of a newer version."""
    version: Any = about.get("format") if isinstance(about, dict) else None
    need(type(version) is int and version > 0, f"damaged, or not {what}")
    need(version <= newest, f"format {version!s:.20}, made by a newer version of svmp")


# --- arrays ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """The declaration of an array in a file.

    Attributes
    ----------
    shape
        Its shape.
    trouble
        Returns what is wrong with an array, or None.
    types
        The dtypes that it may have.
    """

    shape: tuple[int, ...]
    trouble: Callable[[np.ndarray], str | None]
    types: tuple[str, ...] = ("float64",)


def check_tensors(tensors: Tensors, declared: Mapping[str, Tensor]) -> None:
    """Refuse arrays that are not as declared, or that are not declared at all."""
    for name in (*declared, *tensors):
        need(name in tensors, f"damaged: there is no array {name!r:.60}")
        need(name in declared, f"damaged: there is an unknown array {name!r:.60}")
    for name, tensor in declared.items():
        array = tensors[name]
        need(array.dtype in tensor.types, f"damaged: {name!r:.60} is of {array.dtype}")
        is_as = f"damaged: {name!r:.60} is {array.shape} instead of {tensor.shape}"
        need(array.shape == tensor.shape, f"{is_as:.200}")
        trouble = tensor.trouble(array)
        need(trouble is None, f"damaged: {name!r:.60} {trouble}")


def finite(array: np.ndarray) -> str | None:
    """Refuse numbers that are not finite."""
    return None if np.isfinite(array).all() else "has numbers that are not finite"


def anything(array: np.ndarray) -> str | None:
    """Accept any array."""
    return None


def proper(family: Family, count: int = 1) -> Callable[[np.ndarray], str | None]:
    """Refuse natural parameters outside the domain, or the sum of `count` of them."""

    def trouble(array: Array) -> str | None:
        with np.errstate(all="ignore"):
            sound = family.in_domain(array / count).all()
        return None if sound else "is not a proper distribution"

    return trouble


def moments_of(family: Family, tensors: Tensors, natural: str) -> Callable[[Array], str | None]:
    """Refuse moments that do not belong to an array of natural parameters, up to rounding."""

    def trouble(array: Array) -> str | None:
        if not np.isfinite(array).all():
            return "has numbers that are not finite"
        if not array.size:
            return None
        with np.errstate(all="ignore"):
            own = family.moments(tensors[natural])
            near = np.abs(array - own) <= NEAR * np.abs(own).max(axis=-1, keepdims=True)
        return None if near.all() else "does not belong to the natural parameters"

    return trouble
