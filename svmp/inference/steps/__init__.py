"""Step policies, one file each.

`POLICIES` is the only list of them: checkpoints, the lab and the study derive theirs from it.
"""

from svmp.inference.steps.constant import Constant as Constant
from svmp.inference.steps.grow import Grow as Grow
from svmp.inference.steps.hold_then_decay import HoldThenDecay as HoldThenDecay
from svmp.inference.steps.nodewise import Nodewise as Nodewise
from svmp.inference.steps.policy import Policy as Policy
from svmp.inference.steps.policy import StepContext as StepContext
from svmp.inference.steps.policy import Steps as Steps
from svmp.inference.steps.policy import as_policy as as_policy
from svmp.inference.steps.robbins_monro import RobbinsMonro as RobbinsMonro

POLICIES: tuple[type[Policy], ...] = (
    RobbinsMonro,
    HoldThenDecay,
    Nodewise,
    Grow,
    Constant,
)
