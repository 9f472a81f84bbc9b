"""Numbers that a form can ask for: what a method or a step policy declares about its parameters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One number of a method or a step policy.

    Attributes
    ----------
    default
        Value that a form starts with; text may be a fraction, as "1/512".
    low, high
        Range that a form accepts. The class itself may refuse more.
    label
        What the number is, in a few words.
    whole
        Whether it must be a whole number.
    """

    default: float | str
    low: float
    high: float
    label: str
    whole: bool = False
