"""Which sequences of a chain can be updated together: those that share no row of another table.

Where a row reads two rows of a chain, as a match reads the form of both teams, their sequences are
co-parents and are updated in turn. Two rows of one sequence cannot be read together: q of a
sequence is one block, whose solution needs messages to one of its rows at a time.
"""

from __future__ import annotations

import numpy as np

from svmp.errors import ModelError
from svmp.network.chains.chain import Chain
from svmp.network.colouring import greedy_colours
from svmp.network.edge import Edge
from svmp.network.grid import Ints


def sequence_turns(chain: Chain, edges: list[Edge]) -> list[Ints] | None:
    """Return sets of sequences that are updated one after the other; None if all are at once."""
    codes, tables, offset = [], [], 0
    for edge in edges:
        colours = None if edge.choosing else edge.colours()
        if colours is None or not colours.max(initial=0):
            continue
        table = edge.conditional.variable
        rows = np.arange(table.size) if edge.present is None else edge.present
        elements, where = edge.pairs_in(rows)
        code = chain.sequences.code[elements]
        key = where * np.int64(chain.sequences.count) + code
        values, counts = np.unique(key, return_counts=True)
        if counts.max(initial=1) > 1:
            row = int(values[np.argmax(counts > 1)] // chain.sequences.count)
            row //= edge.conditional.components
            raise ModelError(
                f"the row {table.plate.locate(row)} of '{table.name}' reads two rows of one "
                f"sequence of '{chain.variable.name}'; put both values into one state, as a vector"
            )
        codes.append(code)
        tables.append(where + offset)
        offset += table.size * edge.conditional.components
    if not codes:
        return None
    turns = greedy_colours(np.concatenate(codes), np.concatenate(tables), chain.sequences.count)
    if not turns.max(initial=0):
        return None
    return [np.flatnonzero(turns == turn) for turn in range(int(turns.max()) + 1)]
