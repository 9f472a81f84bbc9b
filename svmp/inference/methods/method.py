"""The interface of methods: which rows are read, and when a new value is used.

In option (a) of the paper new values are used at once; in option (b) at the end of the iteration.
Each method has a file, with the class of its draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

import numpy as np

from svmp.errors import ModelError
from svmp.inference.methods.division import Division
from svmp.inference.methods.draw import Draw
from svmp.inference.methods.settings import Setting
from svmp.network.grid import Ints
from svmp.network.grouping import Grouping
from svmp.network.network import Network
from svmp.network.validation import shown

Option = Literal["a", "b"]
MOST = 2**40
"""More rows than any table has; compiled loops take no larger numbers than 64 bits hold."""


class Method(ABC):
    """An algorithm, with its declared properties.

    Attributes
    ----------
    option
        When a new value is used: "a" at once, "b" from the next iteration.
    order
        Names of the hidden variables in the order of their updates; None for the default.
    joint
        Whether elements in one sum of a mean, such as the factors of a user, or an intercept and a
        slope, are solved together from the same rows; otherwise they are updated in turn.
    over
        The dim whose groups are drawn; None if rows are drawn.
    length
        Most rows of a group, if groups are subchains of long sequences.
    unit_steps
        Whether every iteration is coordinate ascent, on all rows or on a sample as if it were all.
        Steps then have unit length by default, and nothing can diverge.
    shares_rows
        Whether one draw of rows serves all elements. Otherwise each draws its own.
    needs_over
        Whether `over` must be given, so that a form for all networks cannot offer the method.
    relaxes
        Whether the means of blocks that are solved together are moved beyond their solution.
    keeps_sums
        Whether the sums over the rows of each part are kept from one iteration to the next. Such a
        method divides the groups of `over` into parts.
    title
        Name of the method in a form; the name of the class if empty.
    settings
        The parameters that a form asks for.
    """

    option: Option
    order: Sequence[str] | None
    joint: bool
    over: str | None = None
    length: int | None = None
    relaxes: bool = False
    unit_steps: ClassVar[bool] = False
    shares_rows: ClassVar[bool] = True
    needs_over: ClassVar[bool] = False
    keeps_sums: ClassVar[bool] = False
    title: ClassVar[str] = ""
    settings: ClassVar[dict[str, Setting]] = {}

    @abstractmethod
    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        """Choose the rows of one iteration."""

    def grouping(self, network: Network) -> Grouping | None:
        """Return the groups that are drawn; None if rows are drawn."""
        return None if self.over is None else network.grouped(self.over)

    def visited_parts(self, sizes: Ints, seed: int, iteration: int) -> Ints:
        """Choose the parts that one iteration visits, where rows lie in parts.

        Parameters
        ----------
        sizes
            Number of observed rows in each part.
        seed, iteration
            As for `draw`.
        """
        raise ModelError(
            f"{type(self).__name__} draws rows for each element by itself, and cannot visit parts; "
            "use FullVB, Growing, Batch or Memoized, or leave out the method"
        )

    def reads_all(self, iteration: int) -> bool:
        """Return whether an iteration reads all rows, or uses sums over all of them."""
        return False

    def ends_sweep(self, network: Network, iteration: int) -> bool:
        """Return whether a sweep over all rows ends with an iteration."""
        return self.reads_all(iteration)

    def relaxation(self, iteration: int) -> float:
        """Return the largest factor of over-relaxation of an iteration; 1 for none."""
        return 1.0

    def rotates(self, iteration: int) -> bool:
        """Return whether factors are rotated before an iteration, if that raises the bound."""
        return False

    def division(self, network: Network, seed: int) -> Division | None:
        """Return the parts whose sums are kept, if `keeps_sums`."""
        return None

    def with_children(self, C: int) -> Method:
        """Return this method with C children for each element."""
        raise ModelError("Grow sets how many children are read, so it goes with Children")

    @property
    def label(self) -> str:
        """Short description for the legend of a figure."""
        return type(self).__name__

    def recipe(self) -> dict[str, Any]:
        """Return the arguments of this method, as a dict."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


def check_method(method: object) -> None:
    """Refuse anything but an instance of `Method`.

    >>> from svmp import FullVB
    >>> check_method(FullVB)
    Traceback (most recent call last):
    svmp.errors.ModelError: method must be an algorithm, as svmp.FullVB(), not the class FullVB
    """
    if not isinstance(method, Method):
        raise ModelError(f"method must be an algorithm, as svmp.FullVB(), not {shown(method)}")
    order = method.order
    listed = isinstance(order, Sequence) and not isinstance(order, str)
    if order is not None and not (listed and all(isinstance(name, str) for name in order)):
        raise ModelError(f"order must be a list of names of variables, not {shown(order)}")


def check_order(network: Network, order: Sequence[str] | None) -> list[str]:
    """Return the names of the hidden variables in the order of their updates."""
    if order is None:
        return network.default_order
    if sorted(order) != sorted(network.hidden):
        raise ModelError(
            f"order names {sorted(order)}, but the hidden variables are {sorted(network.hidden)}"
        )
    return list(order)


def check_option(option: object) -> None:
    """Refuse any option but the paper's two."""
    if not isinstance(option, str) or option not in ("a", "b"):
        given = shown(option)
        raise ModelError(f'option must be "a" (seen at once) or "b" (at the end), not {given}')


def check_count(name: str, number: object) -> None:
    """Refuse anything but a positive whole number."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ModelError(f"{name} must be a whole number of at least 1, not {shown(number)}")
