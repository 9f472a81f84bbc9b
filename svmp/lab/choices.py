"""The algorithms and step policies that the page offers, and the form that asks for them.

Both follow from svmp's lists of methods and step policies: a class that is added to a list has an
entry in the form, with a field for each number that it declares in `settings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from svmp.errors import ModelError
from svmp.inference import steps
from svmp.inference.methods import Method
from svmp.inference.methods.settings import Setting
from svmp.inference.steps import Policy
from svmp.study.choices import defaults, methods_by_name, takes_option

DEFAULT = "default"
"""Name of the algorithm that is left to `svmp.fit`."""
OPTIONS = ("a", "b")


def algorithms() -> dict[str, type[Method]]:
    """Return the methods by the names that the page sends, without the default."""
    return methods_by_name()


def policies() -> dict[str, type[Policy]]:
    """Return the step policies by the names that the page sends."""
    return {cls.__name__: cls for cls in steps.POLICIES}


def determined(policy: type[Policy], method: type[Method]) -> set[str]:
    """Return the settings of a method that a step policy determines, as `Grow` determines C."""
    chosen = method(**defaults(method))
    try:
        varied = [policy(**defaults(policy)).method_at(chosen, t) for t in (1, 100)]
    except ModelError:  # the two do not go together
        return set()
    return {n for n in method.settings if any(vars(m)[n] != vars(chosen)[n] for m in varied)}


def form() -> dict[str, Any]:
    """Return what the page builds its form from, as JSON types.

    Each field has a condition under which it is shown, such as "algorithm:children policy:!Grow":
    the algorithm is `children`, and the policy is not `Grow`.
    """
    methods, schedules = algorithms(), policies()
    stepped = [name for name, cls in methods.items() if not cls.unit_steps]
    default = {
        "name": DEFAULT,
        "title": "svmp’s default",
        "hint": "A sample of the ratings that grows, with unit steps: nothing to tune.",
    }
    return {
        "algorithms": [default, *(_algorithm(name, cls) for name, cls in methods.items())],
        "policies": [
            {
                "name": name,
                "title": cls.title or name,
                "settings": _own_defaults(cls, schedules.values()),
            }
            for name, cls in schedules.items()
        ],
        "algorithmFields": _fields("algorithm", methods),
        "policyFields": _fields("policy", schedules),
        "withOption": _condition("algorithm", [n for n, c in methods.items() if takes_option(c)]),
        "withSteps": _condition("algorithm", stepped),
    }


def _algorithm(name: str, cls: type[Method]) -> dict[str, str]:
    summary = (cls.__doc__ or "").partition("\n")[0]
    return {
        "name": name,
        "title": cls.title or cls.__name__,
        "hint": summary if cls.unit_steps else "",
    }


def _own_defaults(cls: type[Policy], every: Iterable[type[Policy]]) -> dict[str, float | str]:
    """Return the defaults in which a policy differs from others with a setting of that name."""
    used = [(name, setting.default) for c in every for name, setting in c.settings.items()]
    return {
        name: setting.default
        for name, setting in cls.settings.items()
        if any(other == name and value != setting.default for other, value in used)
    }


def _fields(kind: str, classes: Mapping[str, type[Method] | type[Policy]]) -> list[dict[str, Any]]:
    """Return the fields of all classes; those that several share come last."""
    users = Counter(name for cls in classes.values() for name in cls.settings)
    settings = {
        name: s for cls in reversed([*classes.values()]) for name, s in cls.settings.items()
    }
    order = sorted(users, key=users.__getitem__)
    return [_field(kind, name, settings[name], classes) for name in order]


def _field(
    kind: str, name: str, setting: Setting, classes: Mapping[str, type[Method] | type[Policy]]
) -> dict[str, Any]:
    condition = _condition(kind, [n for n, cls in classes.items() if name in cls.settings])
    if kind == "algorithm":
        without = [
            p
            for p, policy in policies().items()
            if any(name in determined(policy, method) for method in algorithms().values())
        ]
        condition += " " + _condition("policy", without, "!") if without else ""
    return {
        "name": name,
        "label": setting.label,
        "default": setting.default,
        "low": setting.low,
        "high": setting.high,
        "whole": setting.whole,
        "condition": condition,
    }


def _condition(kind: str, names: Iterable[str], negated: str = "") -> str:
    return f"{kind}:{negated}{','.join(names)}"
