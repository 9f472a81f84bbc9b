"""Labels of dims in a saved fit: arrays of numbers or of UTF-8 bytes, never pickled objects.

    kind     labels are             array "labels/<dim>"                  "label_ends/<dim>"
    size     none                   -                                     -
    int      whole numbers          int64                                 -
    float    numbers                float64                               -
    date     dates                  int64, days since 1970                -
    time     times without a zone   int64, microseconds since 1970        -
    text     strings                bytes of all, one after the other     the end of each
    json     these, booleans,       bytes of all, each as JSON            the end of each
             tuples of them, and
             times with a zone

Labels of any other kind are not saved; their dims then have a size only. In JSON a tuple is a list,
and a date or a time is an object: {"date": "2024-02-29"}, {"time": "2024-02-29T12:00:00+01:00"}.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any

import numpy as np

from svmp.errors import FileError
from svmp.network.dims.coords import Extent
from svmp.network.dims.matching import size_of
from svmp.saving.schema import (
    Check,
    Tensor,
    Tensors,
    anything,
    dict_of,
    finite,
    need,
    one_of,
    record,
    whole,
)

DAY, MICROSECOND = "datetime64[D]", "datetime64[us]"
KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "date": (date,),
    "time": (datetime,),
    "text": (str,),
}
"""The types of labels of each kind; those of the first kind that has them all."""
JSON = "json"
COORDS: Check = dict_of(record({"kind": one_of("size", *KINDS, JSON), "size": whole(high=2**40)}))


def kind_of(labels: Sequence[Any]) -> str:
    """Return the kind of labels, "size" if they cannot be saved.

    >>> kind_of(["a", "b"]), kind_of([1, 2.5]), kind_of([("a", 1)]), kind_of([1j])
    ('text', 'float', 'json', 'size')
    """
    types = {type(label) for label in labels}
    zoned = datetime in types and any(
        label.tzinfo is not None for label in labels if isinstance(label, datetime)
    )
    large = int in types and any(abs(label) >= 2**63 for label in labels if type(label) is int)
    for kind, known in KINDS.items():
        if types <= set(known) and not zoned and not large:
            return kind
    return JSON if all(map(_in_json, labels)) else "size"


def _in_json(label: Any) -> bool:
    """Return whether a label can be written as JSON and read back."""
    if type(label) is tuple:
        return all(map(_in_json, label))
    if type(label) is float:
        return isfinite(label)
    return type(label) in (str, int, bool, date, datetime)


def _to_json(label: Any) -> Any:
    """Return a label in terms of JSON."""
    if isinstance(label, tuple):
        return [_to_json(part) for part in label]
    if isinstance(label, datetime):
        return {"time": label.isoformat()}
    return {"date": label.isoformat()} if isinstance(label, date) else label


def _from_json(value: Any) -> Any:
    """Return the label that was written as JSON, or raise a ValueError."""
    if isinstance(value, list):
        return tuple(_from_json(part) for part in value)
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        if not isinstance(text, str) or kind not in ("date", "time"):
            raise ValueError("neither a date nor a time")
        return date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)
    if not _in_json(value):
        raise ValueError("no label")
    return value


def pack(coords: Mapping[str, Extent]) -> tuple[dict[str, Any], Tensors]:
    """Return the description of the dims and the arrays of their labels."""
    about: dict[str, Any] = {}
    tensors: Tensors = {}
    for dim, extent in coords.items():
        kind = "size"
        if not isinstance(extent, int):
            kind, arrays = kind_of(extent), _arrays(extent)
            kind = "size" if arrays is None else kind
            if arrays is not None:
                tensors |= {f"{prefix}/{dim}": array for prefix, array in arrays.items()}
        about[dim] = {"kind": kind, "size": size_of(extent)}
    return about, tensors


def _arrays(labels: Sequence[Any]) -> dict[str, np.ndarray] | None:
    """Return the arrays of some labels, or None if they cannot be saved."""
    kind = kind_of(labels)
    try:
        if kind == "int":
            return {"labels": np.array(labels, dtype=np.int64)}
        if kind == "float":
            numbers = np.array(labels, dtype=np.float64)
            exact = np.isfinite(numbers).all() and numbers.tolist() == list(labels)
            return {"labels": numbers} if exact else None
        if kind == "date":
            return {"labels": np.array(labels, dtype=DAY).astype(np.int64)}
        if kind == "time":
            return {"labels": np.array(labels, dtype=MICROSECOND).astype(np.int64)}
        if kind in ("text", JSON):
            texts = labels if kind == "text" else [json.dumps(_to_json(label)) for label in labels]
            parts = [text.encode() for text in texts]
            ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
            return {"labels": np.frombuffer(b"".join(parts), np.uint8), "label_ends": ends}
    except (OverflowError, UnicodeEncodeError):
        return None
    return None


def declared(about: Mapping[str, Any], tensors: Tensors) -> dict[str, Tensor]:
    """Declare the arrays of labels in a file."""
    found = {}
    for dim, of in about.items():
        name, ends, count = f"labels/{dim}", f"label_ends/{dim}", of["size"]
        if of["kind"] in ("text", JSON):
            known = tensors.get(ends)
            sound = known is not None and known.dtype == np.int64 and known.shape == (count,)
            last = int(known[-1]) if known is not None and sound and count else 0
            found[ends] = Tensor((count,), ascending, ("int64",))
            found[name] = Tensor((last,), anything, ("uint8",))
        elif of["kind"] == "float":
            found[name] = Tensor((count,), finite)
        elif of["kind"] != "size":
            found[name] = Tensor((count,), anything, ("int64",))
    return found


def ascending(ends: np.ndarray) -> str | None:
    """Refuse ends of strings that are not in order."""
    return None if (np.diff(ends, prepend=0) >= 0).all() else "is not in order"


def unpack(about: Mapping[str, Any], tensors: Tensors) -> dict[str, Extent]:
    """Return the sizes and labels of dims, from arrays as declared."""
    coords: dict[str, Extent] = {}
    for dim, of in about.items():
        if of["kind"] == "size":
            coords[dim] = of["size"]
            continue
        try:
            labels = READ[of["kind"]](tensors, dim)
            sound = len(set(labels)) == of["size"] and kind_of(labels) == of["kind"]
        except (OverflowError, RecursionError, TypeError, ValueError):
            sound = False
        if not sound and of["size"]:
            raise FileError(f"damaged: the labels of {dim!r:.60} make no sense")
        coords[dim] = labels
    return coords


def _numbers(tensors: Tensors, dim: str) -> list[Any]:
    return list(tensors[f"labels/{dim}"].tolist())


def _dates(tensors: Tensors, dim: str) -> list[Any]:
    return list(tensors[f"labels/{dim}"].astype(DAY).tolist())


def _times(tensors: Tensors, dim: str) -> list[Any]:
    return list(tensors[f"labels/{dim}"].astype(MICROSECOND).tolist())


def _texts(tensors: Tensors, dim: str) -> list[Any]:
    joined, ends = tensors[f"labels/{dim}"].tobytes(), tensors[f"label_ends/{dim}"].tolist()
    return [joined[first:last].decode() for first, last in zip([0, *ends], ends, strict=False)]


def _values(tensors: Tensors, dim: str) -> list[Any]:
    return [_from_json(json.loads(text)) for text in _texts(tensors, dim)]


READ: dict[str, Callable[[Tensors, str], list[Any]]] = {
    "int": _numbers,
    "float": _numbers,
    "date": _dates,
    "time": _times,
    "text": _texts,
    JSON: _values,
}
"""How the labels of each kind are read."""


def check_sizes(variables: Mapping[str, Any], coords: Mapping[str, Any]) -> None:
    """Refuse dims whose size is not that of the variables."""
    for name, of in variables.items():
        for dim, size in zip(of["dims"], of["plate"], strict=False):
            known = dim not in coords or coords[dim]["size"] == size
            need(known, f"damaged: dimension {dim!r:.60} of {name!r:.60} has another size")
