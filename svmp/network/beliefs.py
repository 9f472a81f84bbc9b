"""q: the natural parameter and the moments of every hidden variable. All state is here."""

from __future__ import annotations

from dataclasses import dataclass, field

from svmp.families.family import Array


@dataclass
class Beliefs:
    """The approximate posterior, fully factorised over elements.

    Attributes
    ----------
    natural, moments
        By variable, arrays of (elements, size); moments always belong to the natural parameters.
    means
        E[mu] of every row of some tables, where an algorithm that reads all rows keeps them.
    """

    natural: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Array] = field(default_factory=dict)
    means: dict[str, Array] = field(default_factory=dict)
