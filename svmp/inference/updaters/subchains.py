"""Subchains: some rows of long sequences with buffers around them (Foti, Xu, Laird & Fox 2014).

q of some rows of a long sequence hardly depends on rows that are far away. So only a range of rows
is solved: the drawn rows and a buffer on either side, as if nothing were known of the state before
the first row of the range, nor of the rows after its last one. A buffer is doubled until the state
at its outer end tells no more than a tolerance about the state at the end of the drawn rows, in
nats (network/chains/dependence.py), or until it reaches the end of the sequence, beyond which there
is nothing to know. So what knowing more could change is measured, and bounded, at every end.

Ranges that overlap are solved as one. q of the buffers is written too: the transition to the first
drawn row reads the row before it, and other chains read the states around theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.chains.dependence import dependence
from svmp.network.chains.sequences import Sequences, Spans
from svmp.network.grid import Ints

FIRST = 16
"""Rows of a buffer at first."""


class Runs(NamedTuple):
    """Drawn rows that follow each other: places in `Sequences.order`, from `begin` up to `end`.

    `first` and `last` are the places between which each has its sequence.
    """

    begin: Ints
    end: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, sequences: Sequences, rows: Ints) -> Runs:
        """Return the runs of some rows, as long as possible."""
        places = np.sort(sequences.place[rows])
        code = sequences.code[sequences.order[places]]
        new = np.append(True, (np.diff(places) > 1) | (np.diff(code) > 0))
        begin, sequence = places[new], code[new]
        end = places[np.append(np.flatnonzero(new)[1:] - 1, len(places) - 1)] + 1
        return cls(begin, end, sequences.starts[sequence], sequences.starts[sequence + 1])


def optimise_runs(
    chain: Chain,
    q: Beliefs,
    rows: Ints,
    tolerance: float,
    live: Ints,
    optimise: Callable[[Beliefs, Spans], int],
) -> int:
    """Set q of drawn rows to the optimum, with buffers; return the number of rows read.

    The longest buffer and the most information that was left are noted in q.

    Parameters
    ----------
    live
        Number of rows of each sequence up to the last with observed descendants.
    optimise
        Sets q of the rows of some spans to the optimum, and returns how many rows it read.
    """
    sequences, joint = chain.sequences, q.joint[chain.variable.name]
    runs, accesses = Runs.of(sequences, rows), 0
    before, after = np.full(len(runs.begin), FIRST), np.full(len(runs.begin), FIRST)
    told_before, told_after = np.full(len(before), np.inf), np.full(len(after), np.inf)
    grows = np.ones(len(before), dtype=bool)
    while grows.any():
        begin = np.maximum(runs.begin - before, runs.first)
        end = np.minimum(runs.end + after, runs.last)
        wide = max(int((runs.begin - begin).max()), int((end - runs.end).max()))
        begin, end = np.minimum.accumulate(begin[::-1])[::-1], np.maximum.accumulate(end)
        apart = (begin[1:] > end[:-1]) | (runs.first[1:] > runs.first[:-1])
        new = np.append(True, apart)  # ranges that overlap or touch are one
        of = np.cumsum(new) - 1
        heads = np.flatnonzero(new)
        tails = np.append(heads[1:] - 1, len(new) - 1)
        some = np.unique(of[grows])
        heads, tails = heads[some], tails[some]
        spans = sequences.cut(begin[heads], end[tails], live)
        accesses += optimise(q, spans)
        told_before[np.isin(of, some)] = told_after[np.isin(of, some)] = 0.0
        for told, which, forward in ((told_before, heads, False), (told_after, tails, True)):
            near = runs.end[which] - 1 if forward else runs.begin[which]
            far = end[which] - 1 if forward else begin[which]
            inner = far != (runs.last[which] - 1 if forward else runs.first[which])
            open_, steps = which[inner], np.abs(far - near)[inner]
            found = dependence(
                chain, q, sequences.order[near[inner]], steps, forward, 0.5 * tolerance
            )
            told[open_] = found
        before[told_before > tolerance] *= 2
        after[told_after > tolerance] *= 2
        grows = (told_before > tolerance) | (told_after > tolerance)
    left = max(told_before.max(), told_after.max())
    joint["buffers"] = np.maximum(joint.get("buffers", np.zeros(2)), [wide, left])
    return accesses
