"""What it means that a run converged: one definition, for the study and for its tests."""

from __future__ import annotations

from typing import Literal

Ending = Literal["converged", "slow", "far off", "diverged"]
SHARE = 0.9
"""Of what full VB gains from the same start in as many accesses, a run must gain this much."""
DIP = 0.01
"""A run that never was below its start by more than this share of that gain did not fall."""


def converges(status: str, bound: float, start: float, full: float) -> bool:
    """Return whether a run converged.

    Parameters
    ----------
    status, bound
        Those of the run; a status "diverged" is final (svmp/inference/guard.py).
    start
        The bound where it started.
    full
        That of full VB from the same start after as many accesses.
    """
    return status != "diverged" and bound - start >= SHARE * (full - start)


def ending(status: str, bound: float, start: float, full: float, lowest: float) -> Ending:
    """Say how a run ended, of which the `lowest` bound is known as well.

    What did not converge was led astray by steps too large, and is far off; or its steps were too
    small for the budget, and it is slow.

    >>> ending("budget", -1.6e6, -10.7e6, -1.7e6, lowest=-10.7e6)
    'converged'
    >>> ending("budget", -6.8e6, -10.7e6, -1.7e6, lowest=-9.9e7)
    'far off'
    >>> ending("budget", -6.8e6, -10.7e6, -1.7e6, lowest=-10.7e6)
    'slow'
    """
    if status == "diverged":
        return "diverged"
    if converges(status, bound, start, full):
        return "converged"
    return "slow" if lowest >= start - DIP * (full - start) else "far off"
