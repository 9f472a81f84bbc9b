"""Joint draws from q: the one place that says how elements of different variables hang together.

q is factorised over elements, so each is drawn from its own family, but for joint blocks, which are
drawn as a whole. Any other q with correlations between elements, as that of a chain, is to be drawn
here: predictions and `Fit.draw` follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.running.seeds import Seed, generator
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import Posterior, draw_count

STRATIFIED = 1 << 20
"""Most numbers that are drawn in strata."""


def draw_together(
    posteriors: Mapping[str, Posterior],
    names: Collection[str],
    size: int,
    seed: Seed,
    joint: Sequence[JointPosterior] = (),
) -> dict[str, Array]:
    """Return joint draws from q of some variables, with a new first axis that they share."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise ModelError(f"draw needs a list of variables, as ['mu', 'tau'], not {shown(names)}")
    for name in names:
        if name not in posteriors:
            raise ModelError(
                f"the fit has no q of {shown(name)}; it has {list(posteriors)}; values that were "
                "observed are drawn by fit.predict(model, name).draw()"
            )
    count = draw_count(size)
    found: dict[str, Array] = {}
    for block in joint:
        if set(block.names) & set(names):
            drawn = block.draw(posteriors, generator(seed, "joint", *block.names), count)
            found |= {n: x.reshape(count, *posteriors[n].mean.shape) for n, x in drawn.items()}
    return {n: found[n] if n in found else posteriors[n].draw(count, seed) for n in names}


def draw_known(
    families: Mapping[str, Family],
    natural: Mapping[str, Array],
    size: int,
    rng: np.random.Generator,
    stratified: bool,
    joint: Mapping[str, Array],
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
    joint
        Draws of the variables of joint blocks, (size, elements, entries).
    """
    found = {}
    for name, family in families.items():
        if name in joint:
            found[name] = joint[name] if family.event_ndim else joint[name][..., 0]
            continue
        uniform = strata(family, len(natural[name]), size, rng) if stratified else None
        if uniform is None:
            found[name] = family.draw(natural[name], rng, size)
        else:
            found[name] = family.quantile(natural[name], uniform)
    return found


def strata(family: Family, count: int, size: int, rng: np.random.Generator) -> Array | None:
    """Return uniform numbers (draws, elements), one in each stratum; None where too many."""
    if not family.invertible or count * size > STRATIFIED:
        return None
    order = rng.permuted(np.broadcast_to(np.arange(size)[:, None], (size, count)), axis=0)
    return np.asarray((order + rng.random((size, count))) / size)
