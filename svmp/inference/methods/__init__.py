"""Methods, one file each.

`METHODS` is the only list of them: checkpoints, the lab and the study derive theirs from it.
"""

from svmp.inference.methods.batch import Batch
from svmp.inference.methods.children import Children
from svmp.inference.methods.full_vb import FullVB
from svmp.inference.methods.growing import Growing
from svmp.inference.methods.method import Method, Option

METHODS: tuple[type[Method], ...] = (FullVB, Children, Batch, Growing)

__all__ = ["METHODS", "Batch", "Children", "FullVB", "Growing", "Method", "Option"]
