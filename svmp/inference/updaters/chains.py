"""The updater of a chain: q of each sequence becomes the optimum given the messages of its rows.

    q(z) = exp(E[log p(z | parents)] + sum over rows t of eta_(children of t -> t)(z_t)) / Z

A sequence is one block of q: it is solved exactly, with a unit step, by one pass over its rows in
each direction (network/chains/chain.py). A method that draws rows for other variables leaves the
chain with all of its rows, and one that draws groups updates the sequences of these groups. Spans
of long sequences are drawn apart only by a method with a tolerance (subchains.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from svmp.families.family import Array, dot
from svmp.inference.methods.draw import ONE, AllRows, Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.linear_chain import solve_vectors
from svmp.inference.updaters.plain import (
    NONE,
    MessageSum,
    PlainUpdater,
    RowMessages,
    Tangents,
)
from svmp.inference.updaters.subchains import optimise_runs
from svmp.inference.updaters.updater import Change, Updater
from svmp.kernels.chains import plain_smoother, smoother, states
from svmp.kernels.chains.emissions import Emissions
from svmp.kernels.chains.pair_counts import pair_counts
from svmp.network.beliefs import Beliefs
from svmp.network.chains import forward_backward, scaled_recursions
from svmp.network.chains.chain import Chain, ChainEdge
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.chains.sequence_turns import sequence_turns
from svmp.network.chains.sequences import Spans
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network

Solve = Callable[[Chain, Beliefs, Spans, Array], None]
"""Solves spans of the sequences of a chain, given the summed messages to their rows, and writes
q."""


@dataclass(frozen=True, eq=False)
class ChainUpdater(Updater):
    """Updates the sequences of a chain.

    Attributes
    ----------
    plain
        The plain updater of the variable, which adds up the messages of its children.
    solve
        Solves sequences, and writes q.
    """

    network: Network
    plain: PlainUpdater
    solve: Solve
    label: str
    kernels: bool = False

    @classmethod
    def of(cls, network: Network, plain: PlainUpdater, kernels: bool) -> ChainUpdater:
        """Return the updater of a chain."""
        chain = network.chains[plain.name]
        if isinstance(chain, LinearChain):
            how = smoother if kernels else plain_smoother
            label = "compiled smoother of vectors" if kernels else "chain of vectors"
            return cls(network, plain, partial(solve_vectors, how), label, kernels)
        assert isinstance(chain, DiscreteChain)
        if kernels:
            return cls(network, plain, solve_states_compiled, "compiled (chain of states)", True)
        return cls(network, plain, solve_states, "chain of states")

    @property
    def names(self) -> tuple[str, ...]:
        return self.plain.names

    @cached_property
    def chain(self) -> Chain:
        """The density of the chain."""
        return self.network.chains[self.plain.name]

    @cached_property
    def live(self) -> Ints:
        """Number of rows of each sequence up to the last with observed descendants."""
        return self.chain.sequences.live(self.network.present[self.plain.name])

    @cached_property
    def _all_rows(self) -> Draw:
        return AllRows(self.network)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        drawn = rows.drawn_rows(self.plain.name)
        if drawn is None:
            accesses = self.optimise(q, None)
        else:
            accesses = self.optimise_drawn(q, drawn, rows.tolerance)
        yield Change.of_rows_read(self.plain.name, accesses)

    def optimise_drawn(self, q: Beliefs, rows: Ints, tolerance: float | None) -> int:
        """Update the sequences of drawn rows; with a tolerance, only these rows, with buffers.

        Returns the number of rows read: none where nothing that was drawn has observed descendants.
        """
        if not len(rows):
            return 0
        present = self.network.present[self.plain.name]
        every = self.chain.variable.size if present is None else len(present)
        if tolerance is None or len(rows) == every:
            return self.optimise(q, self._sequences(rows))
        return optimise_runs(self.chain, q, rows, tolerance, self.live, self.optimise_spans)

    def _sequences(self, rows: Ints) -> Ints | None:
        """Return the sequences of some rows; None if these are all."""
        sequences = self.chain.sequences
        which = np.flatnonzero(np.bincount(sequences.code[rows], minlength=sequences.count))
        return None if len(which) == sequences.count else which

    @cached_property
    def _turns(self) -> list[Ints] | None:
        """Sets of sequences that are updated in turn, as they share rows; None if none do."""
        return sequence_turns(self.chain, self.network.edges[self.plain.name])

    def optimise(self, q: Beliefs, which: Ints | None) -> int:
        """Set q of some sequences or all to the optimum; return the number of rows read.

        Sequences that share rows of another table are updated in turn.
        """
        if self._turns is None:
            return self._optimise_together(q, which)
        parts = self._turns
        if which is not None:
            parts = [part[np.isin(part, which)] for part in parts]
        return sum(self._optimise_together(q, part) for part in parts if len(part))

    def _optimise_together(self, q: Beliefs, which: Ints | None) -> int:
        return self.optimise_spans(q, self.chain.sequences.spans(which, self.live))

    def optimise_spans(self, q: Beliefs, spans: Spans) -> int:
        """Set q of some spans of sequences to the optimum; return the number of rows read."""
        messages, accesses = self._messages(q, spans.rows)
        learned = self.network.learned.get(self.plain.name)
        if learned is not None:
            messages = messages + learned[spans.rows]
        self.solve(self.chain, q, spans, messages)
        self.network.refresh_means(q, self.plain.name)
        return accesses

    def _messages(self, q: Beliefs, rows: Ints) -> tuple[Array, int]:
        """Return the summed messages of the children of some rows, and the number of rows read.

        Those of one table are returned as they are, and may be kept elsewhere: nothing is written
        to them. The sum of two is an array of its own, to which others are added.
        """
        total, own, accesses = None, False, 0
        for messages in self.plain.messages:
            found = messages(q, self._all_rows, rows, NONE)
            accesses += found.accesses
            if total is None:
                total = found.total
            else:
                total, own = np.add(total, found.total, out=total if own else None), True
        if total is None:
            total = np.zeros((len(rows), self.chain.variable.family.size))
        return total, accesses

    def optimise_rows(self, q: Beliefs, rows: Ints, tolerance: float | None) -> tuple[Array, int]:
        """Update the sequences of drawn rows; return the change of each row in nats, and accesses.

        The change of the marginals of a row is the symmetrised KL between the old and the new one.
        """
        name, change = self.plain.name, np.zeros(self.chain.variable.size)
        natural, moments = q.natural[name][rows], q.moments[name][rows]
        accesses = self.optimise_drawn(q, rows, tolerance)
        change[rows] = dot(q.natural[name][rows] - natural, q.moments[name][rows] - moments)
        return change, accesses

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        if self.kernels and isinstance(self.chain, DiscreteChain):
            present = self.network.present[self.plain.name]
            self.chain.keep_statistics(q, *self.chain.pair_statistics(q, present, pair_counts))
        return self.plain.bound_term(q)


@dataclass(frozen=True, eq=False)
class TransitionMessages(RowMessages):
    """The messages of transitions to their parameters: of all rows, or of rows that were drawn.

    The moments of all pairs with the same parameters are added up first.
    """

    edge: ChainEdge
    kernels: bool = False

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        chain, parent = self.edge.chain, self.edge.parent
        drawn = rows.drawn_rows(chain.variable.name)
        if drawn is None:
            return super().__call__(q, rows, elements, tangents)
        if self.edge not in rows.memory:
            rows.memory[self.edge] = self.edge.read_among(drawn), self.edge.children_in(drawn)
        some, children = rows.memory[self.edge]
        read = children[elements]
        if isinstance(chain, DiscreteChain):
            follows = chain.sequences.previous[some] >= 0
            count = pair_counts if self.kernels else forward_backward.pair_counts
            counts, _ = chain.row_counts(q, some[follows], count)
            message = chain.transition_message(q, parent, counts, some[~follows])
        else:
            assert isinstance(chain, LinearChain)
            message = chain.transition_message(q, parent, chain.row_sums(q, some))
        return MessageSum(message[elements], rows.scale(parent.name, elements), int(read.sum()))


@dataclass(frozen=True, eq=False)
class EmissionMessages:
    """The messages of a chain's emissions, compiled: to the chain, and to their own parameters."""

    emissions: Emissions
    edge: Edge

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        if self.edge.choosing:
            message, read = self.emissions.logits(q, elements)
            return MessageSum(message, ONE, read)
        drawn = self._drawn(rows)
        sums = self.emissions.sums(q, drawn)
        message = self.emissions.loops.message(q, sums, self.edge, elements)
        scale = ONE if drawn is None else rows.scale(self.edge.parent.name, elements)
        return MessageSum(message, scale, self.emissions.loops.reads(sums, self.edge, elements))

    def _drawn(self, rows: Draw) -> Ints | None:
        """Return the rows of the chain whose emissions were drawn; None for all."""
        table = self.edge.conditional.variable
        drawn, chain = rows.drawn_rows(table.name), self.emissions.choosing.parent
        if drawn is None or table.size == chain.size:
            return drawn
        return np.unique(drawn // (table.size // chain.size))


def solve_states(chain: Chain, q: Beliefs, spans: Spans, messages: Array) -> None:
    """Solve sequences of states by forward-backward."""
    assert isinstance(chain, DiscreteChain)
    initial, transition, steps = _given(chain, q, spans)
    how = scaled_recursions if scaled_recursions.is_likely(transition) else forward_backward
    chain.write(q, spans, how.solve(initial, transition, messages, steps))


def solve_states_compiled(chain: Chain, q: Beliefs, spans: Spans, messages: Array) -> None:
    """Solve sequences of states by compiled loops, in the arrays of q if all are solved."""
    assert isinstance(chain, DiscreteChain)
    initial, transition, steps = _given(chain, q, spans)
    name = chain.variable.name
    into = q.natural[name], q.moments[name], q.joint[name]["potential"]
    if not (spans.whole and chain.sequences.in_table_order):
        into = np.empty_like(messages), np.empty_like(messages), np.empty_like(messages)
    found = states.solve(initial, transition, messages, steps, into)
    chain.write(q, spans, found)


def _given(
    chain: DiscreteChain, q: Beliefs, spans: Spans
) -> tuple[Array, Array, forward_backward.Steps]:
    """Return log densities of the first states of spans, E[log P], and the steps.

    Nothing is known of the first state of a span that begins within its sequence.
    """
    initial = np.ascontiguousarray(chain.log_start(q, spans.firsts))
    if spans.within is not None:
        initial[spans.within] = 0.0
    group = chain.group[spans.rows]
    steps = forward_backward.Steps(spans.starts, spans.live, group)
    return initial, chain.log_transition(q), steps
