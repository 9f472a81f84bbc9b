"""Definition of convergence, for the study and its tests."""

from __future__ import annotations

from typing import Literal

Ending = Literal["converged", "slow", "far off", "diverged"]
SHARE = 0.9
"""A run that converges gains at least this share of full VB's gain in as many accesses."""
DIP = 0.01
"""A run that was never below its start by more than this share of that gain did not fall."""


def converges(status: str, bound: float, start: float, full: float) -> bool:
    """Return whether a run converged.

    Parameters
    ----------
    status, bound
        Status and last bound of the run.
    start
        Bound at the start.
    full
        Bound of full VB from the same start after as many accesses.
    """
    return status != "diverged" and bound - start >= SHARE * (full - start)


def ending(status: str, bound: float, start: float, full: float, lowest: float) -> Ending:
    """Return how a run ended, whose lowest bound is `lowest`.

    A run that did not converge is "far off" if it fell below its start, because its steps were too
    large; otherwise its steps were too small for the budget, and it is "slow".

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
