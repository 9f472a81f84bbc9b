"""Step policies: the step rho_i of each element.

A policy is any function from a `StepContext` to the steps of some elements, between 0 and 1:

>>> def cautious(context):
...     return 0.5 * context.read / context.children
>>> from svmp import StepContext
>>> cautious(StepContext("u", 1, children=np.array([100]), read=np.array([4])))
array([0.02])

The policies of svmp are classes with further declared properties.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods import Children, Method
from svmp.inference.methods.settings import Setting
from svmp.network.grid import Ints


@dataclass(frozen=True)
class StepContext:
    """The information that a step policy has about some elements of one variable.

    Attributes
    ----------
    variable, iteration
        The variable's name, and the number of the iteration, from 1.
    children, read
        `N_i` and `|rows_i|`: the number of children of each element, and of those that it reads.
        Under `Batch(size, over=dim)` these are D and S, the numbers of all groups and of groups
        drawn.
    coupling
        Largest number of other elements in a row with one of these.
    together
        Whether all elements move at the same time, as in option (b).
    share
        Share of the observations that an iteration draws, where one draw serves all elements and
        those with a child in it are moved, as in `Batch(size)`.
    gradient, square
        Running means of the natural gradient and of its square, (elements, size); kept only for
        policies with an attribute `statistics` that is true.
    """

    variable: str
    iteration: int
    children: Ints
    read: Ints
    coupling: int = 0
    together: bool = False
    share: float | None = None
    gradient: Array | None = None
    square: Array | None = None

    @property
    def readings(self) -> Array:
        """Mean number of times that each element has read each of its children before."""
        share = self.read / np.maximum(self.children, 1) if self.share is None else self.share
        return np.asarray((self.iteration - 1) * share)


Steps = Callable[[StepContext], ArrayLike]


class Policy(ABC):
    """A step policy, with its declared properties.

    Attributes
    ----------
    adaptive
        Whether steps depend on the child counts. A run that diverges under an adaptive policy
        continues with shorter steps; under any other it stops.
    statistics
        Whether the policy uses `gradient` and `square`, which compiled loops do not compute.
    title
        Name of the policy in a form; the name of the class if empty.
    settings
        The parameters that a form asks for.
    """

    adaptive: ClassVar[bool] = False
    statistics: bool = False
    title: ClassVar[str] = ""
    settings: ClassVar[dict[str, Setting]] = {}

    @property
    def at_most_one(self) -> bool:
        """Whether no step is longer than 1, as is expected of a function of the user's."""
        return True

    def is_safe(self, method: Method) -> bool:
        """Return whether runs of a method under this policy cannot diverge."""
        return method.unit_steps and self.at_most_one

    @abstractmethod
    def __call__(self, context: StepContext) -> ArrayLike:
        """Return the step of each element, or one for all of them."""

    def default_method(self) -> Method:
        """Return the method that `fit` uses by default with this policy."""
        return Children(5)

    def method_at(self, method: Method, iteration: int) -> Method:
        """Return the method of one iteration; most policies do not change it."""
        return method

    @property
    def decay(self) -> float:
        """Forgetting rate of a comparable `RobbinsMonro` schedule."""
        return 0.6

    @property
    def label(self) -> str:
        """Short description for the legend of a figure."""
        return type(self).__name__

    def recipe(self) -> dict[str, Any]:
        """Return the arguments of this policy, as a dict."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


@dataclass(frozen=True)
class FunctionPolicy(Policy):
    """A user-defined function or object as a policy."""

    function: Steps
    statistics: bool = False

    def __call__(self, context: StepContext) -> ArrayLike:
        return self.function(context)


def as_policy(steps: Steps) -> Policy:
    """Return a step policy; a user-defined function is wrapped."""
    if isinstance(steps, Policy):
        return steps
    return FunctionPolicy(steps, bool(getattr(steps, "statistics", False)))


def as_fraction(step: float) -> str:
    """Format a step, as a fraction 1 / n if it is one.

    >>> as_fraction(1 / 512), as_fraction(1.0), as_fraction(0.3)
    ('1/512', '1', '0.3')
    """
    inverse = round(1 / step) if 1e-4 <= step <= 1 else 0
    if inverse == 1 or not abs(inverse * step - 1) <= 1e-9:
        return f"{step:.3g}"
    return f"1/{inverse}"


def refuse(reason: str, force: object) -> None:
    """Refuse parameters outside the theory, unless forced."""
    if not isinstance(force, bool | int) or not force:
        raise ModelError(f"{reason}; force=True takes it all the same")
