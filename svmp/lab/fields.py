"""The fields of a run as the page sends them, each checked and refused by its own sentence.

A field that a run does not use is refused, as is one that is missing, so that what is shown, run
and exported is the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svmp.inference.methods.settings import Setting
from svmp.lab.choices import DEFAULT, OPTIONS, algorithms, determined, policies
from svmp.lab.data import Source
from svmp.study.choices import takes_option

Value = int | float | str


class InvalidFields(Exception):
    """Fields that do not describe a run, with a sentence for each."""

    def __init__(self, errors: dict[str, str]) -> None:
        self.errors = errors
        super().__init__("; ".join(errors.values()))


@dataclass(frozen=True)
class NumberField:
    """A number in a range. If it need not be whole, it may be written as a fraction, "1/512"."""

    low: float
    high: float
    whole: bool = False

    @classmethod
    def of(cls, setting: Setting) -> NumberField:
        """Return the field of a setting of a method or a step policy."""
        return cls(setting.low, setting.high, setting.whole)

    @property
    def requirement(self) -> str:
        """Values that are accepted, in words."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:,} to {self.high:,}"

    def accepts(self, given: object) -> bool:
        """Return whether a value is such a number."""
        value = number(given)
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high


@dataclass(frozen=True)
class ChoiceField:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """Values that are accepted, in words."""
        return f"one of {', '.join(self.words)}"

    def accepts(self, given: object) -> bool:
        """Return whether a value is one of the words."""
        return isinstance(given, str) and given in self.words


Field = NumberField | ChoiceField
SEED = NumberField(0, 2**31 - 1, whole=True)
DATA_FIELDS: dict[str, Field] = {"scale": NumberField(0.001, 1), "data_seed": SEED}
"""Fields of the data sources."""


def read_fields(given: object, sources: Mapping[str, Source]) -> dict[str, Value]:
    """Return the fields of a run if all are present and in range; else raise `InvalidFields`."""
    if not isinstance(given, dict):
        raise InvalidFields({"settings": "settings must be an object with a value for each field"})
    fields = required_fields(given, sources)
    errors = {}
    for name, field in fields.items():
        if name not in given:
            errors[name] = f"{name} is missing"
        elif not field.accepts(given[name]):
            errors[name] = f"{name} must be {field.requirement}"
    for name in given.keys() - fields.keys():
        errors[name[:40]] = "this is not a setting of such a run"
    if errors:
        raise InvalidFields(errors)
    return {name: given[name] for name in fields}


def required_fields(given: Mapping[str, object], sources: Mapping[str, Source]) -> dict[str, Field]:
    """Return the fields of a run with these choices of data, algorithm and step policy."""
    chosen = {name: value for name, value in given.items() if isinstance(value, str)}
    fields: dict[str, Field] = {
        "data": ChoiceField(tuple(sources)),
        "factors": NumberField(1, 50, whole=True),
        "algorithm": ChoiceField((DEFAULT, *algorithms())),
        "sweeps": NumberField(0.01, 500),
        "seed": SEED,
    }
    if source := sources.get(chosen.get("data", "")):
        fields |= {name: DATA_FIELDS[name] for name in source.fields}
    method = algorithms().get(chosen.get("algorithm", ""))
    if method is None:
        return fields
    fields |= {name: NumberField.of(setting) for name, setting in method.settings.items()}
    if takes_option(method):
        fields["option"] = ChoiceField(OPTIONS)
    if not method.unit_steps:
        fields["policy"] = ChoiceField(tuple(policies()))
        policy = policies().get(chosen.get("policy", ""))
        if policy is not None:
            fields |= {name: NumberField.of(setting) for name, setting in policy.settings.items()}
            for name in determined(policy, method):
                del fields[name]
    return fields


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
    """Return a value as Python source.

    >>> code("1/512"), code(0.6), code("a")
    ('1 / 512', '0.6', '"a"')
    """
    if isinstance(value, str):
        return f'"{value}"' if number(value) == value else value.replace("/", " / ")
    return repr(value)
