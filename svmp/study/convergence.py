"""What it means that a run converged: one definition, for the study and for its tests."""

from __future__ import annotations

from typing import Literal

Ending = Literal["converged", "far off", "diverged"]
SHARE = 0.9
"""Of what full VB gains from the same start in as many accesses, a run must gain this much."""


def ending(status: str, bound: float, start: float, full: float) -> Ending:
    """Say how a run ended.

    Parameters
    ----------
    status, bound
        Those of the run; a status "diverged" is final (svmp/inference/guard.py).
    start
        The bound where it started.
    full
        That of full VB from the same start after as many accesses.

    >>> ending("budget", -1.6e6, -10.7e6, -1.7e6)
    'converged'
    >>> ending("budget", -6.8e6, -10.7e6, -1.7e6)
    'far off'
    """
    if status == "diverged":
        return "diverged"
    return "converged" if bound - start >= SHARE * (full - start) else "far off"


def converges(status: str, bound: float, start: float, full: float) -> bool:
    """Return whether a run converged."""
    return ending(status, bound, start, full) == "converged"
