"""The posteriors of all hidden variables of a run, with those of its joint blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svmp.families.family import Array
from svmp.inference.blas import one_blas_thread
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.program.program import Program
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.variable import Variable
from svmp.posterior.marginals.chain_posterior import ChainPosterior
from svmp.posterior.marginals.integrating import integrate
from svmp.posterior.marginals.posterior import Posterior, Posteriors
from svmp.posterior.marginals.vector_chain_posterior import VectorChainPosterior


def posteriors_of(
    program: Program, q: Beliefs
) -> tuple[Mapping[str, Posterior], tuple[JointPosterior, ...]]:
    """Return the posterior of each hidden variable, and of each joint block.

    Those of local variables that q does not store are computed on first access.
    """
    hidden = program.network.hidden
    known = {block.layout.names: block for block in q.blocks}
    with one_blas_thread():
        joint = tuple(
            JointPosterior.of(
                known[b.layout.names], *integrate(b, known[b.layout.names], q), b.left_out
            )
            for b in program.setup.joint
            if b.layout.names in known
        )

    def posterior(name: str, natural: Array) -> Posterior:
        v = hidden[name]
        if name in q.joint:
            return chain_posterior(v, q)
        for block in joint:
            natural = block.marginal(name, natural, v.family)
        return Posterior(name, v.dims, v.plate.shape, v.family, natural)

    def implicit(name: str) -> Posterior:
        if isinstance(hidden[name].conditional, Chain):
            return joined_chain(hidden[name], program.chain_parts(q, name))
        return posterior(name, program.implicit_natural(q, name))

    stored = {name: posterior(name, q.natural[name]) for name in q.natural}
    if len(stored) == len(hidden):
        return stored, joint
    return Posteriors(list(hidden), stored, implicit), joint


def chain_posterior(variable: Variable, q: Beliefs) -> Posterior:
    """Return the posterior of a chain whose joint q is known."""
    if isinstance(variable.conditional, DiscreteChain):
        return ChainPosterior.of(variable, q)
    return VectorChainPosterior.of(variable, q)


def joined_chain(variable: Variable, parts: Sequence[tuple[Variable, Beliefs]]) -> Posterior:
    """Return the posterior of a chain whose sequences lie in parts, with q of each part."""
    found = [chain_posterior(own, q) for own, q in parts]
    states = [p for p in found if isinstance(p, ChainPosterior)]
    vectors = [p for p in found if isinstance(p, VectorChainPosterior)]
    if states:
        return ChainPosterior.joined(variable, states)
    return VectorChainPosterior.joined(variable, vectors)
