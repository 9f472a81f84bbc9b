"""Check that natural parameters are in their domain."""

from __future__ import annotations

import numpy as np

from svmp.errors import ImproperError
from svmp.families.family import Array
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.partly_known import base_of


def check_domain(variable: Symbol, elements: Ints, natural: Array) -> None:
    """Refuse a natural parameter outside its domain, by variable and index."""
    sound = variable.family.at(elements).in_domain(natural)
    if not sound.all():
        position = int(np.flatnonzero(~sound)[0])
        where = variable.plate.locate(int(elements[position]))
        raise ImproperError(
            variable.name, where, type(base_of(variable.family)).__name__, natural[position]
        )
