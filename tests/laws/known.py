"""Failures that are known and not mended yet: each with its reason, and gone when it is mended."""

from __future__ import annotations

from collections.abc import Callable

from .spec import Add, Expr, Mul, Spec, names, parts_of

LINEAR_CHAINS = ("LinearGaussianChain", "GaussianRandomWalk")


def beside_a_chain(spec: Spec) -> bool:
    """Whether a mean adds a chain of vectors to something else that is hidden."""
    chains = {d.name for d in spec.declarations if d.kind in LINEAR_CHAINS}

    def within(e: Expr) -> bool:
        if isinstance(e, Add | Mul) and names(e) & chains and names(e) - chains:
            return True
        return any(within(part) for part in parts_of(e))

    return any(within(e) for d in spec.declarations for _, e in d.parameters)


KNOWN: tuple[tuple[str, Callable[[str, Spec, str], bool]], ...] = (
    (
        "two tables on one chain of states crash",
        lambda law, spec, message: "output array is read-only" in message,
    ),
    (
        "a chain of vectors beside an effect crashes, or ends at a wrong answer",
        lambda law, spec, message: "KeyError: 'init tau'" in message or beside_a_chain(spec),
    ),
)
"""The reason, and whether a failure is the known one."""


def reason(law: str, spec: Spec, message: str) -> str | None:
    """Return why a failure is known; None if it is new."""
    return next((why for why, fits in KNOWN if fits(law, spec, message)), None)
