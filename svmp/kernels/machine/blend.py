"""The step of both algorithms in compiled code, written once: (1 - rho) lambda + rho lambda'."""

from __future__ import annotations

from svmp.kernels.machine.compiling import bare


@bare
def blend(old: float, target: float, step: float) -> float:
    """Return a natural parameter moved by a step towards its target."""
    return (1 - step) * old + step * target
