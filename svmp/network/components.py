"""Checks of a density when it is declared: its constants, and the components of a mixture."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from svmp.errors import ModelError
from svmp.factors.factor import Factor
from svmp.network.expressions import Symbol
from svmp.network.grid import Labelled
from svmp.network.slot import Slot


def check_constants(
    name: str, factor: Factor, constants: Mapping[str, Labelled], axis: str | None
) -> None:
    """Refuse constants out of range; `axis` is that of a mixture's components."""
    trouble = factor.check({k: c.values for k, c in constants.items()})
    if trouble:
        raise ModelError(f"'{name}': {trouble}")
    trials = constants.get("n")
    if trials is not None and axis in trials.axes:
        # The base measure of a row would depend on its component, and so would its support.
        raise ModelError(f"n of '{name}' must be the same for all components")


def check_components(
    name: str,
    factor: Factor,
    components: tuple[str, int],
    constants: Collection[Labelled],
    slots: Collection[Slot],
) -> None:
    """Refuse a mixture of components that are all the same, along an axis of some length."""
    axis, count = components
    if any(axis in c.axes for c in constants) or any(axis in slot.axes for slot in slots):
        return
    raise ModelError(
        f"all {count} {type(factor).__name__} components of '{name}' are the same; give a "
        f"parameter of them the dimension '{axis}', along which z chooses"
    )


def component_axis(variable: Symbol, selector: Slot) -> tuple[str, int]:
    """Return the axis of a mixture's components: that of its Categorical's probabilities."""
    name = variable.name
    (chooser,) = selector.variables
    label, length = chooser.category_axis or (None, 1)
    if label is None:
        raise ModelError(
            f"z of '{name}': the categories of '{chooser.name}' have no dimension; give its p "
            "as a Dirichlet or as svmp.data(p, dims=...)"
        )
    if label in variable.plate.labels:
        raise ModelError(f"'{name}' has the components' own dimension '{label}'")
    return label, length
