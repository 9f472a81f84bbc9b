"""Memoized variational inference (Hughes & Sudderth, NeurIPS 2013): exact updates, part by part.

The groups of a dim are divided once into P parts. An iteration visits one of them: its variables
are optimised, its sums S_p replace those of its last visit, and the global variables are updated
exactly from the sums of all parts,

    lambda_i = eta_i + S_1 + ... + S_P

No sums are known before the first sweep. Where no row depends on two global variables, as in topic
models, the visits of the first five sweeps are stochastic steps, and those of the first 20 read the
means of Dirichlets; in hidden Markov models some 60 of the first visits are steps (see
division.py). In other networks, and in `Fit.update`, the first sweep updates the global variables
once, at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.inference.methods.division import Division
from svmp.inference.methods.draw import Draw
from svmp.inference.methods.method import MOST, Method, Option, check_count
from svmp.inference.methods.settings import Setting
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import text


@dataclass(frozen=True)
class Memoized(Method):
    """Exact updates from the sums of all parts of the data, after each part that is read.

    The elements of a dim, each with all of its rows, are divided into `parts` fixed parts of about
    the same number of elements. A sweep visits all parts in random order. At each visit the
    variables that belong to the part alone (a document's shares of topics, its tokens' topics) are
    optimised, from where they were at the last visit; in the early sweeps, from near their prior.
    Then the sums over the part's rows replace those of its last visit, and every global
    variable is updated from the sums over all parts. There is no step size to choose: where no row
    depends on several global elements, the first five sweeps take the steps of stochastic
    inference, with chains of states some 60 visits (one sweep to five) take longer ones, and
    elsewhere the first sweep updates the global variables at its end. Where no row depends on
    several global elements and some are Dirichlets, as in topic models, parts read the means of
    these in the first 20 sweeps (five with rows in `svmp.Parts`), and their variables start near
    the prior in all of them.

    After these early sweeps the exact bound is computed after each sweep, and never falls: if a
    sweep has lowered it, because global variables share rows and the sums of other parts were out
    of date, the sweep is undone, and the next one updates each variable from all rows. Earlier
    sweeps have a bound only where `bound_every` asks for it.

    In `Fit.update` the global variables are good from the start: no first sweep takes steps, and
    the variables of a part never start anew; in the first 20 they read the means of Dirichlets.

    Parameters
    ----------
    over
        The dim whose elements are divided: documents, users, schools. Rows that lie in parts
        already (`svmp.Parts`) need none.
    parts
        Number of parts; there are never more than elements of the dim. Rows that lie in parts
        already stay as they are.
    order
        Names of the hidden variables in the order of their updates.
    """

    title: ClassVar[str] = "Memoized: exact updates, part by part"
    unit_steps: ClassVar[bool] = True
    needs_over: ClassVar[bool] = True
    keeps_sums: ClassVar[bool] = True
    settings: ClassVar[dict[str, Setting]] = {
        "parts": Setting(10, 1, 1_000_000, "Parts", whole=True)
    }
    over: str | None = None
    parts: int = 10
    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False, repr=False)
    joint: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.over is not None:
            text(self.over, "over")
        check_count("parts", self.parts)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return self.division(network, seed).visited(iteration)

    def division(self, network: Network, seed: int) -> Division:
        """Return the parts of a network; they are cached in it."""
        over = self.dim
        known: Division | None = network.derived.get("division")
        key = (over, self.parts, seed)
        if known is None or known.key != key:
            count = min(self.parts, network.grouped(over).count, MOST)
            known = network.derived["division"] = Division(network, over, count, seed, key)
        return known

    def reads_all(self, iteration: int) -> bool:
        return True

    def ends_sweep(self, network: Network, iteration: int) -> bool:
        return iteration % self.division_size(network) == 0

    def division_size(self, network: Network) -> int:
        """Return the number of parts."""
        return min(self.parts, network.grouped(self.dim).count)

    @property
    def dim(self) -> str:
        """The dim whose elements are divided; refused where there is none."""
        if self.over is None:
            raise ModelError(
                'Memoized divides the elements of a dim: name it, as in svmp.Memoized(over="doc")'
            )
        return self.over

    def visited_parts(self, sizes: Ints, seed: int, iteration: int) -> Ints:
        """Return the part that an iteration visits; every sweep visits each part once."""
        parts = np.flatnonzero(sizes)
        sweep, turn = divmod(iteration - 1, len(parts))
        order = np.random.default_rng([seed, sweep, 8]).permutation(len(parts))
        return parts[order[turn : turn + 1]]

    @property
    def label(self) -> str:
        return f"Memoized, {self.parts:,} parts"
