"""Algorithms and step policies as JSON: the name of a class and its arguments."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from svmp.errors import FileError, ModelError
from svmp.inference.methods import METHODS, Method
from svmp.inference.steps import POLICIES, Policy
from svmp.inference.steps.policy import FunctionPolicy
from svmp.saving.schema import (
    ANY,
    Check,
    dict_of,
    list_of,
    number,
    one_of,
    optional,
    record,
    text,
    truth,
    whole,
)

KNOWN: dict[str, Any] = {kind.__name__: kind for kind in (*METHODS, *POLICIES)}
"""The classes that a file may name."""


def how_many(name: str, value: Any) -> Any:
    """Check C of Children: a number, or one for each variable."""
    each = whole(1, ANY)
    return (dict_of(each) if isinstance(value, dict) else each)(name, value)


FIELDS: dict[str, Check] = {
    "bool": truth,
    "int": whole(high=ANY),
    "int | None": optional(whole(high=ANY)),
    "float": number(infinite=True),
    "float | None": optional(number(infinite=True)),
    "str": text,
    "str | None": optional(text),
    "Option": one_of("a", "b"),
    "Sequence[str] | None": optional(list_of(text)),
    "int | Mapping[str, int] | Callable[[Ints], Ints]": how_many,
}
"""By declared type, the check of a field in a file."""


def given(kind: Any) -> dict[str, Check]:
    """Return the arguments of one of svmp's own classes, with the check of each."""
    return {
        f.name: FIELDS[str(f.type)] for f in fields(kind) if f.init and not f.name.startswith("_")
    }


def recipe(thing: Method | Policy) -> Any:
    """Return the class and arguments of a method or policy, or its name if it is user-defined."""
    kind = type(thing)
    if KNOWN.get(kind.__name__) is kind:
        arguments = thing.recipe()
        try:
            json.dumps(arguments)
        except TypeError:
            return repr(thing)
        return {"class": kind.__name__, "fields": arguments}
    own = thing.function if isinstance(thing, FunctionPolicy) else thing
    return getattr(own, "__qualname__", repr(own))


def check_recipe(name: str, value: Any) -> Any:
    """Refuse an invalid recipe; a user-defined method or policy has only its name."""
    if isinstance(value, str):
        return value
    kind = one_of(*KNOWN)("class", value.get("class") if isinstance(value, dict) else None)
    found = record({"class": text, "fields": record(given(KNOWN[kind]))})(name, value)
    try:
        KNOWN[kind](**found["fields"])
    except (ModelError, ArithmeticError) as error:
        raise FileError(f"damaged: its {name!r:.60} cannot be made ({error})") from None
    return found


def make(saved: dict[str, Any]) -> Any:
    """Make a method or policy from a checked recipe."""
    return KNOWN[saved["class"]](**saved["fields"])
