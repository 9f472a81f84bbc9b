"""The fields of a run as the page sends them, each refused by a sentence of its own.

A field that a run does not use is refused like one that is missing, so that what is shown, run and
exported is the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svmp.lab.data import Source

Value = int | float | str


class Refused(Exception):
    """Settings that cannot be run: a sentence for each field that is in the way."""

    def __init__(self, errors: dict[str, str]) -> None:
        self.errors = errors
        super().__init__("; ".join(errors.values()))


@dataclass(frozen=True)
class Number:
    """A number between two others; one that is not whole may be written as a fraction, "1/512"."""

    low: float
    high: float
    whole: bool = False

    @property
    def need(self) -> str:
        """What such a field must be."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:,} to {self.high:,}"

    def takes(self, given: object) -> bool:
        """Return whether a value is such a number."""
        value = number(given)
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def need(self) -> str:
        """What such a field must be."""
        return f"one of {', '.join(self.words)}"

    def takes(self, given: object) -> bool:
        """Return whether a value is one of the words."""
        return isinstance(given, str) and given in self.words


LARGEST_SEED = 2**31 - 1
ALWAYS = ("data", "factors", "algorithm", "sweeps", "seed")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "default": (),
    "full": (),
    "children": ("option", "C", "policy"),
    "batch": ("option", "size", "policy"),
}
POLICIES: dict[str, tuple[str, ...]] = {
    "RobbinsMonro": ("kappa", "rho1"),
    "HoldThenDecay": ("hold", "kappa"),
    "Nodewise": ("c", "kappa"),
    "Grow": ("start", "rate", "c"),
    "Constant": ("rho",),
}
"""The step policies, with their parameters, by svmp's own names."""

FIELDS: dict[str, Number | Choice] = {
    "scale": Number(0.001, 1),
    "data_seed": Number(0, LARGEST_SEED, whole=True),
    "factors": Number(1, 50, whole=True),
    "algorithm": Choice(tuple(ALGORITHMS)),
    "option": Choice(("a", "b")),
    "C": Number(1, 100_000, whole=True),
    "size": Number(1, 1_000_000, whole=True),
    "policy": Choice(tuple(POLICIES)),
    "rho1": Number(0.0001, 1),
    "kappa": Number(-10, 10),  # which of these are sound, RobbinsMonro says
    "hold": Number(0, 1000, whole=True),
    "c": Number(0.0001, 1),
    "start": Number(1, 1_000_000),
    "rate": Number(1.01, 100),
    "rho": Number(0.0001, 1),
    "sweeps": Number(0.01, 500),
    "seed": Number(0, LARGEST_SEED, whole=True),
}


def read_fields(given: object, sources: Mapping[str, Source]) -> dict[str, Value]:
    """Return the fields of a run if all are there and in range; else raise `Refused`."""
    if not isinstance(given, dict):
        raise Refused({"settings": "settings must be an object with a value for each field"})
    fields = {"data": Choice(tuple(sources)), **FIELDS}
    wanted = wanted_by(given, sources)
    errors = {}
    for name in wanted:
        if name not in given:
            errors[name] = f"{name} is missing"
        elif not fields[name].takes(given[name]):
            errors[name] = f"{name} must be {fields[name].need}"
    for name in given.keys() - set(wanted):
        errors[name[:40]] = "this is not a setting of such a run"
    if errors:
        raise Refused(errors)
    return {name: given[name] for name in wanted}


def wanted_by(given: Mapping[str, object], sources: Mapping[str, Source]) -> list[str]:
    """Return the fields that a run has, as these choices stand."""
    chosen = {name: value for name, value in given.items() if isinstance(value, str)}
    names = [*ALWAYS, *ALGORITHMS.get(chosen.get("algorithm", ""), ())]
    if source := sources.get(chosen.get("data", "")):
        names += source.fields
    if "policy" in names:
        names += POLICIES.get(chosen.get("policy", ""), ())
        if chosen.get("policy") == "Grow" and "C" in names:
            names.remove("C")  # which the policy sets
    return names


FRACTION = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)


def number(value: Any) -> Any:
    """Return a fraction as a number, and anything else as it is.

    >>> number("1/512"), number(0.25), number("a")
    (0.001953125, 0.25, 'a')
    """
    parts = FRACTION.fullmatch(value) if isinstance(value, str) else None
    if parts is None or int(parts[2]) == 0:
        return value
    return int(parts[1]) / int(parts[2])


def code(value: Value) -> str:
    """Write a value as Python.

    >>> code("1/512"), code(0.6), code("a")
    ('1 / 512', '0.6', '"a"')
    """
    if isinstance(value, str):
        return f'"{value}"' if number(value) == value else value.replace("/", " / ")
    return repr(value)
