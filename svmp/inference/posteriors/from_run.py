"""The posteriors of all hidden variables of a run, with those of its joint blocks."""

from __future__ import annotations

from collections.abc import Mapping

from svmp.families.family import Array
from svmp.inference.posteriors.chain_posterior import ChainPosterior
from svmp.inference.posteriors.integrating import integrate
from svmp.inference.posteriors.joint_posterior import JointPosterior
from svmp.inference.posteriors.posterior import Posterior, Posteriors
from svmp.inference.posteriors.vector_chain_posterior import VectorChainPosterior
from svmp.inference.program import Program
from svmp.network.beliefs import Beliefs
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.linear_chain import LinearChain


def posteriors_of(
    program: Program, q: Beliefs
) -> tuple[Mapping[str, Posterior], tuple[JointPosterior, ...]]:
    """Return the posterior of each hidden variable, and of each joint block.

    Those of local variables that q does not store are computed on first access.
    """
    hidden = program.network.hidden
    known = {block.layout.names: block for block in q.blocks}
    joint = tuple(
        JointPosterior.of(known[b.layout.names], *integrate(b, known[b.layout.names], q))
        for b in program.setup.joint
        if b.layout.names in known
    )

    def posterior(name: str, natural: Array) -> Posterior:
        v = hidden[name]
        if isinstance(v.conditional, DiscreteChain) and name in q.joint:
            return ChainPosterior.of(v, q)
        if isinstance(v.conditional, LinearChain) and name in q.joint:
            return VectorChainPosterior.of(v, q)
        for block in joint:
            natural = block.marginal(name, natural, v.family)
        return Posterior(name, v.dims, v.plate.shape, v.family, natural)

    def implicit(name: str) -> Posterior:
        return posterior(name, program.implicit_natural(q, name))

    stored = {name: posterior(name, q.natural[name]) for name in q.natural}
    if len(stored) == len(hidden):
        return stored, joint
    return Posteriors(list(hidden), stored, implicit), joint
