"""Methods, one file each.

`METHODS` is the only list of them: checkpoints, the lab and the study derive theirs from it.
"""

from svmp.inference.methods.batch import Batch as Batch
from svmp.inference.methods.children import Children as Children
from svmp.inference.methods.full_vb import FullVB as FullVB
from svmp.inference.methods.growing import Growing as Growing
from svmp.inference.methods.memoized import Memoized as Memoized
from svmp.inference.methods.method import Method as Method
from svmp.inference.methods.method import Option as Option

METHODS: tuple[type[Method], ...] = (
    FullVB,
    Children,
    Batch,
    Growing,
    Memoized,
)
