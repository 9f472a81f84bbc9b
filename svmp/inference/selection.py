"""The algorithms: how each draws rows, and when the others see a new value.

(a) at once; (b) at the end of the iteration, all together. rows.py has what they draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from svmp.errors import ModelError
from svmp.inference.grouped import DrawnGroups, draw_groups
from svmp.inference.rows import AllRows, Draw, DrawnBatch, DrawnChildren, Sampled
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import check_real, shown, text

Option = Literal["a", "b"]
MOST = 2**40
"""More rows than any table has; compiled loops take no larger numbers than 64 bits hold."""
DOUBLINGS = 1000
"""More than bring any share of the rows up to all of them, and no overflow."""


class Selection(Protocol):
    """An algorithm: how it draws, and when a new value is seen: (a) at once, (b) at the end.

    With `joint`, elements that stand in one sum of a mean, as the factors of a user, or an
    intercept and a slope, are solved together from the same rows; otherwise one after the other.
    """

    option: Option
    order: Sequence[str] | None
    joint: bool

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        """Choose the rows of one iteration."""
        ...


@dataclass(frozen=True)
class FullVB(Selection):
    """Full variational Bayes: every element reads all of its rows, and steps have unit length.

    Parameters
    ----------
    order
        Names of the hidden variables in the order of their updates. By default the choices among
        components come first, precisions last, and the others as they were declared.
    """

    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False)
    joint: bool = field(default=False, init=False)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return AllRows(network)


@dataclass(frozen=True)
class Children(Selection):
    """Algorithm 1: every element reads at most C of its children, drawn without replacement.

    Parameters
    ----------
    C
        How many; one number, one for each variable by name, or a function from the child counts
        of a variable's elements to how many each reads.
    option
        "a": a new value is seen at once; "b": at the end of the iteration, all together.
    share_draw
        Let the elements of one variable that have the same children (a user's factors) read the
        same ones in an iteration, which costs less than a draw for each.
    order
        Names of the hidden variables in the order of their updates.

    >>> Children(0)
    Traceback (most recent call last):
    svmp.errors.ModelError: C must be a whole number of at least 1, not 0
    """

    C: int | Mapping[str, int] | Callable[[Ints], Ints]
    option: Option = "a"
    share_draw: bool = False
    order: Sequence[str] | None = None
    joint: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        check_option(self.option)
        numbers = self.C.values() if isinstance(self.C, Mapping) else [self.C]
        for number in numbers:
            if not callable(number):
                check_count("C", number)

    def most(self, name: str, children: Ints) -> Ints:
        """Return how many children each element may read."""
        most = self.C(children) if callable(self.C) else self.C
        if isinstance(most, Mapping):
            if name not in most:
                raise ModelError(f"C has no number for the hidden variable '{name}'")
            most = most[name]
        if isinstance(most, int) and most >= 1:
            return np.minimum(min(most, MOST), children)
        numbers = np.asarray(most)
        whole = numbers.dtype.kind in "iu" and numbers.shape in ((), children.shape)
        if not whole or np.any(numbers < np.minimum(children, 1)):
            raise ModelError(
                f"C must give each element of '{name}' a whole number of at least 1, not "
                f"{shown(most)}"
            )
        return np.minimum(np.broadcast_to(numbers.astype(np.int64), children.shape), children)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return DrawnChildren(network, self.most, self.share_draw, seed, iteration)


@dataclass(frozen=True)
class Batch(Selection):
    """Algorithm 2: one draw of `size` observations; only what has a child among them is updated.

    Variables that have no observed children, such as hyper-parameters, read all their children.

    With `over`, the name of a dim, it is `size` elements of that dim that are drawn, each with all
    of its rows: documents, say, as Hoffman, Blei, Wang & Paisley (2013) do. The variables that
    belong to them alone (a document's shares of topics, its tokens' topics) are optimised first,
    by coordinate ascent until they rest. Then every global variable is updated, with the messages
    of the drawn rows scaled by the number of groups over that of groups drawn.

    Parameters
    ----------
    size
        How many observations are drawn; with `over`, how many elements of that dim.
    option
        "a": a new value is seen at once; "b": at the end of the iteration, all together.
    order
        Names of the hidden variables in the order of their updates.
    over
        The dim whose elements are drawn, instead of observations.
    """

    size: int
    option: Option = "a"
    order: Sequence[str] | None = None
    over: str | None = None
    joint: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        check_option(self.option)
        check_count("size", self.size)
        if self.over is not None:
            text(self.over, "over")

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        if self.over is not None:
            grouping = network.grouped(self.over)
            drawn = draw_groups(grouping.count, min(self.size, MOST), seed, iteration)
            return DrawnGroups(network, grouping, drawn)
        return DrawnBatch(network, min(self.size, MOST), seed, iteration)


@dataclass(frozen=True)
class Growing(Selection):
    """Full VB on a sample of the observations that grows until it is all of them.

    Every iteration is coordinate ascent on the exact bound of a smaller data set, so steps have
    unit length and nothing can diverge. While few rows are read a sweep costs little, and what it
    finds is where the next, larger sample starts from. The sample doubles each time that `pace`
    sweeps' worth of accesses have been spent, and all samples together cost one sweep at most.
    With `first=1` it is full VB from the start.

    Parameters
    ----------
    first
        Share of the observations in the first sample.
    pace
        Accesses between doublings, as a share of a sweep over all of them.
    joint
        Solve elements that stand in one sum of a mean together: the factors of a user; intercepts,
        slopes and group effects, up to 512 of them. Their q is where updating one after the other
        would come to rest, given all else. Otherwise they are updated one after the other.
    order
        Names of the hidden variables in the order of their updates. Variables that are solved
        together have the turn of the first of them.
    """

    first: float = 1 / 32
    pace: float = 0.2
    joint: bool = True
    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False)

    def __post_init__(self) -> None:
        check_real(first=self.first, pace=self.pace)
        if not 0 < self.first <= 1 or not self.pace > 0:
            given = f"{shown(self.first)} and {shown(self.pace)}"
            raise ModelError(f"Growing needs first in (0, 1] and a positive pace, not {given}")

    def share(self, iteration: int) -> float:
        """Return the share of the observations that an iteration reads."""
        share, spent = self.first, 0.0
        for _ in range(iteration - 1):
            spent += share
            share = self.first * 2.0 ** int(min(spent / self.pace, DOUBLINGS))
            if spent + share > 1:
                return 1.0
        return share

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        share = self.share(iteration)
        if share >= 1:
            return AllRows(network)
        if (seed, share) not in network.samples:
            network.samples.clear()
            network.samples[seed, share] = Sampled(network, share, seed)
        return network.samples[seed, share]


def check_option(option: object) -> None:
    """Refuse any option but the paper's two."""
    if not isinstance(option, str) or option not in ("a", "b"):
        given = shown(option)
        raise ModelError(f'option must be "a" (seen at once) or "b" (at the end), not {given}')


def check_count(name: str, number: object) -> None:
    """Refuse what is not a positive whole number."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ModelError(f"{name} must be a whole number of at least 1, not {shown(number)}")
