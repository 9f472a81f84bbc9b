"""Sequences that go on: new rows that follow those of an earlier fit.

The state before the first new row, x_0, belongs to no row. Its density is the earlier q of the last
row of its sequence. No later row was known then, so this is the filtered state. A sequence that
goes on has the density

    q_earlier(x_0) p(x_1 | x_0) p(x_2 | x_1) ...

in place of p(x_1) p(x_2 | x_1) ... . Nothing of x_0 is stored: q(x_0 | x_1) is always the optimum
given the q of the parents, and has a closed form. Pairs (x_0, x_1) send messages to the parents of
transitions, as all other pairs do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.chains.sequences import Sequences
from svmp.network.grid import Ints


class Continued(NamedTuple):
    """The sequences of a chain that go on from an earlier fit.

    Attributes
    ----------
    sequences
        Their numbers, ascending.
    natural
        Natural parameters of the earlier q of their last rows.
    """

    sequences: Ints
    natural: Array

    def first_rows(self, sequences: Sequences) -> Ints:
        """Return the first new row of each."""
        return sequences.order[sequences.starts[self.sequences]]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that say so in `Beliefs.joint`."""
        return {"continues": self.sequences, "before": self.natural}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Continued | None:
        """Return what the arrays of `Beliefs.joint` say; None if no sequence goes on."""
        return cls(arrays["continues"], arrays["before"]) if "continues" in arrays else None


@dataclass(frozen=True, eq=False)
class SequenceEnds:
    """Where the sequences of a chain end, and where they may go on.

    Attributes
    ----------
    labels
        The values of the sequence key; 0 for the one sequence of a chain without a key; None if
        they could not be saved.
    natural
        Natural parameters of q of their last rows.
    """

    labels: Sequence[Any] | None
    natural: Array

    @classmethod
    def of(cls, sequences: Sequences, labels: Sequence[Any] | None, natural: Array) -> SequenceEnds:
        """Return the ends of sequences, from their labels and natural parameters of all rows."""
        which = np.flatnonzero(sequences.lengths > 0)
        last = sequences.order[sequences.starts[which + 1] - 1]
        return cls(labels_at(which, labels), np.array(natural[last]))

    def then(self, later: SequenceEnds) -> SequenceEnds:
        """Return the ends after later rows, of these sequences and of new ones."""
        known = dict(zip(self.labels or (), self.natural, strict=False))
        known |= dict(zip(later.labels or (), later.natural, strict=False))
        return SequenceEnds(list(known), np.array(list(known.values())))

    def continued(self, sequences: Sequences, labels: Sequence[Any] | None) -> Continued | None:
        """Return the sequences of new rows that go on from here; None if there are none."""
        if self.labels is None:
            raise ModelError(
                "the keys of the earlier sequences are of a type that is not saved, so that they "
                f"cannot be matched; say new=['{sequences.dim}'] if all sequences begin anew"
            )
        which = np.flatnonzero(sequences.lengths > 0)
        place = {label: number for number, label in enumerate(self.labels)}
        at = np.array([place.get(label, -1) for label in labels_at(which, labels)], dtype=np.int64)
        return Continued(which[at >= 0], self.natural[at[at >= 0]]) if (at >= 0).any() else None


def labels_at(places: Ints, labels: Sequence[Any] | None) -> list[Any]:
    """Return the labels at some places; where there are none, the places themselves."""
    found: list[Any] = places.tolist()
    return found if labels is None else [labels[place] for place in found]
