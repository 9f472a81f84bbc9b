"""Methods and step policies by name, from svmp's two lists of them.

A class that is added to `svmp.inference.methods.METHODS` or `svmp.inference.steps.POLICIES` is in
these dictionaries, and so in the study and in the lab.
"""

from __future__ import annotations

import inspect
import re
from fractions import Fraction

from svmp.inference import methods, steps
from svmp.inference.methods import Method
from svmp.inference.steps import Policy


def methods_by_name() -> dict[str, type[Method]]:
    """Return the methods by lower-case name, without those that need the name of a dim.

    >>> list(methods_by_name())
    ['full', 'children', 'batch', 'growing']
    """
    return {
        cls.__name__.removesuffix("VB").lower(): cls
        for cls in methods.METHODS
        if not cls.needs_over
    }


def policies_by_name() -> dict[str, type[Policy]]:
    """Return the step policies by lower-case name, with hyphens.

    >>> list(policies_by_name())
    ['robbins-monro', 'hold-then-decay', 'nodewise', 'grow', 'constant']
    """
    names = {re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__): cls for cls in steps.POLICIES}
    return {name.lower(): cls for name, cls in names.items()}


def takes_option(method: type[Method]) -> bool:
    """Return whether a method has the paper's options (a) and (b)."""
    return "option" in inspect.signature(method).parameters


def defaults(cls: type[Method] | type[Policy]) -> dict[str, float]:
    """Return the default of each setting of a method or a step policy.

    >>> from svmp import Growing
    >>> defaults(Growing)
    {'first': 0.03125, 'pace': 0.2}
    """
    values = {name: setting.default for name, setting in cls.settings.items()}
    return {n: float(Fraction(v)) if isinstance(v, str) else v for n, v in values.items()}
