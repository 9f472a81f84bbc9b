"""Which elements of a newly declared network the fit knows, and their q.

    dim of the new network                            its elements are
    any, in the model that was fitted itself          the same
    labels                                            the same by label, else new
    no labels, the rows of a table                    all new
    no labels, any other                              the same by position; the size must be equal

The rules are those of `Fit.update`. An element without observed descendants in the fit has the
prior given *expected* parents as its q, which is too narrow; it counts as new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Bools
from svmp.network.beliefs import Beliefs
from svmp.network.dims.matching import DimMatch, coords_now, match_extent, new_rows, size_of
from svmp.network.forms import check_form, parents_of
from svmp.network.grid import Ints
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.network.validation import shown
from svmp.network.variable import Variable
from svmp.posterior.prediction.blocks import KnownBlock
from svmp.posterior.prediction.chains import chain_of
from svmp.posterior.record.run_record import RunRecord, coords_of

ROUNDING = 1e-9
"""Share of a natural parameter by which that of a barren element may differ from its prior."""


@dataclass(frozen=True, eq=False)
class Known:
    """The variables of a declared network, and what a fit knows about them.

    Attributes
    ----------
    variables
        The variables that can be parents or are predicted, parents first.
    given
        Variables whose values are those that were observed.
    natural
        By variable that the fit has, the natural parameters of its elements; those of elements that
        it does not know mean nothing.
    known
        By variable that the fit has, whether it knows each element.
    blocks
        Joint blocks of the fit.
    """

    variables: Mapping[str, Variable]
    given: Collection[str]
    natural: Mapping[str, Array]
    known: Mapping[str, Any]
    blocks: tuple[KnownBlock, ...] = ()

    def own(self, target: str) -> Bools:
        """Return which rows of a variable have a q of their own: known elements of a hidden one."""
        variable = self.variables[target]
        if target not in self.known or not variable.hidden:
            return np.zeros(variable.size, dtype=bool)
        return np.asarray(self.known[target])

    def values(self, name: str) -> PartlyKnown | None:
        """Return the family of a variable that is observed in part, which has its values."""
        family = self.variables[name].family
        return family if isinstance(family, PartlyKnown) else None

    def split(self, name: str, elements: Ints) -> tuple[Ints, Ints]:
        """Return the known and the new ones among some elements that have no observed value."""
        observed = self.values(name)
        if observed is not None:
            elements = elements[~observed.known[elements]]
        if name not in self.known:
            return elements[:0], elements
        there = self.known[name][elements]
        return elements[there], elements[~there]


def know(
    fit: RunRecord,
    model: Model,
    target: str,
    fitted: bool,
    new: Collection[str] = (),
    known: Collection[str] = (),
) -> Known:
    """Match a declared network with a fit, or say how they differ.

    Parameters
    ----------
    fit, model, target
        The fit, the network of the rows to predict, and the variable to predict.
    fitted
        Whether the model is the one that was fitted.
    new, known
        Dims without labels whose elements are all new, or are those of the fit.
    """
    check_network(fit, model, target)
    hidden = {n: v for n, v in model.variables.items() if n in fit.posteriors and v.hidden}
    dims = match(fit, model, hidden, fitted, new, known)
    ancestors = ancestors_of(model.variables, target)
    natural: dict[str, Array] = {}
    there: dict[str, Any] = {}
    for name in (n for n in hidden if n in ancestors or n == target):
        natural[name], there[name] = earlier(fit, hidden[name], dims)
    given = [n for n in ancestors if not model.variables[n].hidden]
    variables = {n: v for n, v in model.variables.items() if n in ancestors or n == target}
    blocks = tuple(
        KnownBlock(
            joint,
            joint.means(fit.posteriors),
            {n: places(fit, hidden[n], dims) for n in joint.layout.names if n in there},
        )
        for joint in fit.joint
    )
    found = Known(variables, given, natural, there, blocks)
    network = Network(model) if fitted and any(map(chain_of, hidden.values())) else None
    for name in there:
        chain = chain_of(hidden[name])
        if chain is None:
            there[name] = there[name] & ~without_children(found, name)
        elif network is not None:  # rows after the last one that is observed are not known
            counted = np.zeros(chain.variable.size, dtype=bool)
            counted[network.rows(hidden[name])] = True
            there[name] = there[name] & counted
    return found


def check_network(fit: RunRecord, model: Model, target: Any) -> None:
    """Refuse a network that is not the one that was fitted, or that lacks the target."""
    variables = model.variables
    if isinstance(target, Variable):
        raise ModelError(f"predict needs the name of a variable, as '{target.name}'")
    if not isinstance(target, str) or target not in variables:
        raise ModelError(f"the model has no variable {shown(target)}; it has {list(variables)}")
    if target in fit.posteriors and chain_of(variables[target]) is not None:
        raise ModelError(
            f"'{target}' is a chain, of which fit['{target}'] is the posterior; predict a variable "
            f"that was observed, one of {observed_of(fit)}"
        )
    for name, q in fit.posteriors.items():
        if name not in variables:
            raise ModelError(
                f"the fit has q of '{name}', which the model to predict does not declare: it is "
                "not the network that was fitted"
            )
        variable = variables[name]
        then, now = (type(base_of(f)).__name__ for f in (q.family, variable.family))
        if then != now:
            raise ModelError(f"'{name}' was a {then} in the fit and is a {now} in the model")
        if q.dims != variable.dims:
            raise ModelError(
                f"'{name}' had dims {q.dims} in the fit and has {variable.dims} in the model"
            )
        was, parents = fit.parents.get(name), parents_of(variable)
        if was is not None and variable.hidden and sorted(was) != sorted(parents):
            raise ModelError(
                f"'{name}' depended on {was} in the fit and depends on {parents} in the model"
            )
    for name, variable in variables.items():
        check_form(variable, fit.forms.get(name))
        if variable.hidden and name not in fit.posteriors and name not in fit.bound_terms:
            raise ModelError(
                f"the model hides '{name}', of which the fit has no posterior; it has "
                f"{list(fit.posteriors)}"
            )
    if target not in fit.bound_terms and target not in fit.posteriors:
        raise ModelError(
            f"the fit knows nothing of '{target}'; it can predict {observed_of(fit)}, which were "
            "observed"
        )


def observed_of(fit: RunRecord) -> list[str]:
    """Return the variables that were observed in a fit."""
    return [name for name in fit.bound_terms if name not in fit.posteriors]


def ancestors_of(variables: Mapping[str, Variable], target: str) -> list[str]:
    """Return the variables that a variable depends on, parents first; observed ones have none."""
    found = {target}
    for name in reversed([*variables]):
        variable = variables[name]
        if name in found and (variable.hidden or name == target):
            found |= {parent.name for parent in variable.conditional.parents()}
    return [name for name in variables if name in found and name != target]


def match(
    fit: RunRecord,
    model: Model,
    hidden: Mapping[str, Variable],
    fitted: bool,
    new: Collection[str],
    known: Collection[str],
) -> dict[str, DimMatch]:
    """Match the dims of the hidden variables with those of the fit."""
    then = fit.coords or coords_of(fit)
    now = coords_now(model, hidden.values())
    for what, dims in (("new", new), ("known", known)):
        if isinstance(dims, str) or not isinstance(dims, Collection):
            raise ModelError(f"{what} must be a list of dims, not {shown(dims)}")
        for dim in dims:
            if dim not in now:
                raise ModelError(
                    f"{what} names {shown(dim)}, which is no dim of a hidden variable; there are "
                    f"{list(now)}"
                )
    same = set(now) if fitted else {*known}
    tables = [v for n, v in model.variables.items() if n not in fit.posteriors]
    plain = {dim: size_of(extent) for dim, extent in then.items()}
    fresh = {*new} | (new_rows(model, hidden.values(), tables, {*new, *same}, plain) - same)
    fresh |= now.keys() - then.keys()
    return {
        dim: match_extent(dim, e, None if dim in fresh else then[dim]) for dim, e in now.items()
    }


def earlier(fit: RunRecord, variable: Variable, dims: Mapping[str, DimMatch]) -> tuple[Array, Any]:
    """Return the natural parameters of the elements that the fit knows, and which those are."""
    q, size = fit.posteriors, variable.family.size
    natural, known = np.zeros((variable.size, size)), np.ones(1, dtype=bool)
    inside = {*variable.event_dims}
    if variable.category_axis is not None:
        inside |= {dim for dim in dims if dim == variable.category_axis[0]}
    axes = [dims[dim] for dim in variable.plate.labels]
    if any(axis.fresh for axis in axes):
        return natural, np.zeros(variable.size, dtype=bool)
    for dim in inside:
        if not dims[dim].same:
            raise ModelError(
                f"'{variable.name}' has an entry for each '{dim}', so that its size or labels must "
                "be those of the fit, in the same order"
            )
    place = np.zeros(1, dtype=np.int64)
    then = q[variable.name]
    for axis, length in zip(axes, then.plate, strict=True):
        place = (place[:, None] * length + axis.known).ravel()
        known = (known[:, None] & (axis.known >= 0)).ravel()
    if known.any():
        if then.natural.shape[1] != size:
            raise ModelError(f"'{variable.name}' has another number of categories than in the fit")
        natural[known] = then.natural[place[known]]
    return natural, known


def places(fit: RunRecord, variable: Variable, dims: Mapping[str, DimMatch]) -> Ints:
    """Return the element of the fit that each element is; -1 for new ones."""
    axes = [dims[dim] for dim in variable.plate.labels]
    if any(axis.fresh for axis in axes):
        return np.full(variable.size, -1, dtype=np.int64)
    place, known = np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool)
    for axis, length in zip(axes, fit.posteriors[variable.name].plate, strict=True):
        place = (place[:, None] * length + axis.known).ravel()
        known = (known[:, None] & (axis.known >= 0)).ravel()
    return np.where(known, place, -1)


def without_children(found: Known, name: str) -> Any:
    """Return which elements have the prior given the expected parents as their q."""
    variable = found.variables[name]
    none = np.zeros(variable.size, dtype=bool)
    elements = np.flatnonzero(found.known[name])
    parents = [p for p in variable.conditional.parents() if p.name in found.natural]
    if not parents or not len(elements) or len(parents) < len(variable.conditional.parents()):
        return none
    q = Beliefs()
    for parent in parents:
        q.moments[parent.name] = expected(found, parent.name)
    with np.errstate(all="ignore"):
        eta = variable.conditional.to_child(q, elements)
        own = found.natural[name][elements]
        size = np.maximum(np.abs(own), np.abs(eta))
        none[elements] = (np.abs(own - eta) <= ROUNDING * size).all(axis=1)
    return none


def expected(found: Known, name: str) -> Array:
    """Return the moments of a variable, NaN where the fit does not know it."""
    variable, known = found.variables[name], found.known[name]
    moments = np.full((variable.size, variable.family.size), np.nan)
    elements = np.flatnonzero(known)
    moments[elements] = variable.family.at(elements).moments(found.natural[name][elements])
    observed = found.values(name)
    if observed is not None:
        some = np.flatnonzero(observed.known)
        moments[some] = observed.statistics(observed.values[some])
    return moments
