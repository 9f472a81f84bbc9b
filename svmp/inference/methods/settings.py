"""Parameters of methods and step policies that a form can ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One numeric parameter of a method or a step policy.

    Attributes
    ----------
    default
        Value that a form starts with; text may be a fraction, as "1/512".
    low, high
        Range that a form accepts. The class may have narrower limits.
    label
        Short description.
    whole
        Whether it must be a whole number.
    """

    default: float | str
    low: float
    high: float
    label: str
    whole: bool = False
