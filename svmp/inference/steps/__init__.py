"""Step policies, one file each.

`POLICIES` is the only list of them: checkpoints, the lab and the study derive theirs from it.
"""

from svmp.inference.steps.constant import Constant
from svmp.inference.steps.grow import Grow
from svmp.inference.steps.hold_then_decay import HoldThenDecay
from svmp.inference.steps.nodewise import Nodewise
from svmp.inference.steps.policy import Policy, StepContext, Steps, as_policy
from svmp.inference.steps.robbins_monro import RobbinsMonro

POLICIES: tuple[type[Policy], ...] = (RobbinsMonro, HoldThenDecay, Nodewise, Grow, Constant)

__all__ = [
    "POLICIES",
    "Constant",
    "Grow",
    "HoldThenDecay",
    "Nodewise",
    "Policy",
    "RobbinsMonro",
    "StepContext",
    "Steps",
    "as_policy",
]
