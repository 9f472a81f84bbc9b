"""Joint draws from q: the one place that says how elements of different variables hang together.

q is fully factorised over elements, so each is drawn from its own family. A q with correlations
between elements, of a block or a chain, is to be drawn here: predictions and `Fit.draw` follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from svmp.errors import ModelError
from svmp.families import Beta, Exponential, Gamma, Normal
from svmp.families.family import Array, Family
from svmp.inference.posterior import Posterior, draw_count
from svmp.inference.seeds import Seed
from svmp.network.validation import shown

STRATIFIED = 1 << 20
"""Most numbers that are drawn in strata."""


def draw_together(
    posteriors: Mapping[str, Posterior], names: Collection[str], size: int, seed: Seed
) -> dict[str, Array]:
    """Return joint draws from q of some variables, with a new first axis that they share."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise ModelError(f"draw needs a list of variables, not {shown(names)}")
    for name in names:
        if name not in posteriors:
            raise ModelError(
                f"the fit has no q of {shown(name)}; it has {list(posteriors)}; values that were "
                "observed are drawn by fit.predict(model, name).draw()"
            )
    count = draw_count(size)
    return {name: posteriors[name].draw(count, seed) for name in names}


def draw_known(
    families: Mapping[str, Family],
    natural: Mapping[str, Array],
    size: int,
    rng: np.random.Generator,
    stratified: bool,
) -> dict[str, Array]:
    """Return joint draws of some elements of several variables.

    Parameters
    ----------
    families, natural
        By variable, the family and the natural parameters of the elements.
    size
        Number of draws, on a new first axis.
    rng, stratified
        Random numbers, and whether one draw of each element lies in each of `size` parts of equal
        probability (a Latin hypercube): means over such draws are more precise, but the draws are
        not independent.
    """
    found = {}
    for name, family in families.items():
        uniform = strata(family, len(natural[name]), size, rng) if stratified else None
        if uniform is None:
            found[name] = family.draw(natural[name], rng, size)
        else:
            found[name] = family.quantile(natural[name], uniform)
    return found


def strata(family: Family, count: int, size: int, rng: np.random.Generator) -> Array | None:
    """Return uniform numbers (draws, elements), one in each stratum; None where too many."""
    if not isinstance(family, Normal | Gamma | Beta | Exponential) or count * size > STRATIFIED:
        return None
    order = rng.permuted(np.broadcast_to(np.arange(size)[:, None], (size, count)), axis=0)
    return np.asarray((order + rng.random((size, count))) / size)
