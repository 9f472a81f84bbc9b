"""Which updates also compute the losses of all rows of a table, for its term of the bound.

The term of a table with Normal rows is, with the precisions tau of their noise,

    sum_e (E[log tau_e] - log(2 pi) - E[tau_e] E[(y_e - mu_e)^2]) / 2.

The variable of the mean mu that is updated last in a sweep has all that the squares need in the
cache, and returns their sums with its update (`Change.losses`). They are kept with q until another
variable of the mean changes (`Beliefs.losses`). Tables whose loops cannot do that, or are none, are
read once more for the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from svmp.inference.updaters.updater import Updater
from svmp.kernels.multilinear.updater import Multilinear


def measuring_updates(
    updaters: Sequence[Updater], tables: Iterable[Multilinear]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables whose updates compute losses for the bound, and those for the noise.

    The latter always do, since the noise of their table is updated later, and needs the same sums.
    """
    turn = {name: place for place, updater in enumerate(updaters) for name in updater.names}
    for_bounds, for_noise = set(), set()
    for loops in tables:
        operands = [o.name for o in loops.operands if o.name in turn]
        last = max(operands, key=turn.__getitem__, default=None)
        if last is None or not loops.measures(last):
            continue
        for_bounds.add(last)
        noise = loops.conditional.slots["tau"].variables
        later = any(turn.get(variable.name, -1) > turn[last] for variable in noise)
        if later and loops.serves_noise(last):
            for_noise.add(last)
    return frozenset(for_bounds), frozenset(for_noise)
