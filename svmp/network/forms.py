"""The form of a density, in words: which variables each of its parameters is made of.

    mu = effect + slope * x, tau = 2 * noise   ->   {"mu": "effect + slope", "tau": "noise"}.

Numbers, keys and covariates are left out: they differ between the rows that were fitted and those
that are predicted.
"""

from __future__ import annotations

from collections.abc import Mapping

from svmp.errors import ModelError
from svmp.network.chains.chain import Chain
from svmp.network.expressions import DiagonalMatrix, Expression
from svmp.network.means.linear import Linear
from svmp.network.means.vector_mean import VectorMean
from svmp.network.slot import Slot
from svmp.network.variable import Variable

Form = dict[str, str]
"""By parameter, the variables that it is made of; "" for numbers."""


def form_of(variable: Variable) -> Form:
    """Return the form of the density of a variable; that of a chain is empty."""
    given = variable.conditional
    if isinstance(given, Chain):
        return {}
    chosen = {} if given.selector is None else {"z": in_words(given.selector)}
    slots = given.slots.items()
    return chosen | {name: in_words(slot, given.parameters[name]) for name, slot in slots}


def in_words(slot: Slot, declared: Expression | DiagonalMatrix | None = None) -> str:
    """Return the variables of a parameter, as a sum of products.

    Those of a mean are as declared: which terms its slot joins depends on keys and on sizes.
    """
    if isinstance(slot, Linear | VectorMean) and isinstance(declared, Expression):
        products = [sorted(o.variable.name for o in term.operands) for term in declared.terms]
    else:
        products = [sorted(v.name for v in slot.variables)]
    return " + ".join(" * ".join(names) for names in sorted(filter(None, products)))


def check_form(variable: Variable, then: Mapping[str, str] | None) -> None:
    """Refuse a variable whose density has another form than in a fit; None if it is not known."""
    now = form_of(variable)
    if now and then and now.keys() != then.keys():
        raise ModelError(
            f"'{variable.name}' had {' and '.join(then)} in the fit and has {' and '.join(now)} in "
            "the model, so that its density is another one; declare the network that was fitted"
        )
    for parameter in now if then else ():
        was = (then or {}).get(parameter)
        if was is not None and was != now[parameter]:
            raise ModelError(
                f"'{variable.name}' had {parameter} = {was or 'a number'} in the fit and has "
                f"{parameter} = {now[parameter] or 'a number'} in the model, apart from numbers "
                "and covariates; declare the network that was fitted"
            )


def parents_of(variable: Variable) -> list[str]:
    """Return the names of the hidden variables that a variable depends on."""
    return [parent.name for parent in variable.conditional.parents() if parent.hidden]
