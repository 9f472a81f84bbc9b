"""Failures that are known and not mended yet: each with its reason, and gone when it is mended."""

from __future__ import annotations

from collections.abc import Callable

from .spec import CHAINS, Spec

KNOWN: tuple[tuple[str, Callable[[str, Spec, str], bool]], ...] = (
    (
        "Memoized over groups of an effect, where the rows have two chains: ends too low, or falls",
        lambda law, spec, message: (
            law == "bound_never_falls"
            and "Memoized" in message
            and sum(d.kind in CHAINS for d in spec.declarations) > 1
        ),
    ),
)
"""The reason, and whether a failure is the known one."""


def reason(law: str, spec: Spec, message: str) -> str | None:
    """Return why a failure is known; None if it is new."""
    return next((why for why, fits in KNOWN if fits(law, spec, message)), None)
