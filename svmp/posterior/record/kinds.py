"""Where the variances of a fit come from: q, a joint block, or linear response.

Which of them a fit shows is decided in posterior/uncertainty/shown.py.
"""

from __future__ import annotations

from svmp.posterior.record.run_record import RunRecord

Q, JOINT, RESPONSE = "q", "a joint block", "linear response"
"""What variances can be those of."""


def kind_of(fit: RunRecord) -> str:
    """Return where the variances of a record come from: `Q`, `JOINT`, `RESPONSE`, or both."""
    joint = any(not set(block.names) <= set(fit.responding) for block in fit.joint)
    kinds = [RESPONSE] * bool(fit.responding) + [JOINT] * joint
    return " and ".join(kinds) or Q


def kind_of_variable(fit: RunRecord, name: str) -> str:
    """Return where the variance of one variable comes from."""
    if name in fit.responding:
        return RESPONSE
    return JOINT if any(name in block.names for block in fit.joint) else Q
