"""Which variables have a joint q: the argument `joint` of `svmp.fit`.

A block is a set of Normals and MvNormals whose means enter every row linearly, with known
coefficients. It is given by names, or found: all variables that qualify and share rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from svmp.errors import ModelError
from svmp.inference.methods import Growing, Method
from svmp.inference.steps import Constant, Policy
from svmp.inference.updaters.joint_block import JointBlock, quoted
from svmp.inference.updaters.joint_rows import mean_of
from svmp.inference.updaters.linear_block import connected
from svmp.network.edge import Edge
from svmp.network.means.linear import Linear
from svmp.network.means.vector_mean import VectorMean
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Single
from svmp.network.validation import shown
from svmp.network.variable import Variable

Joint = bool | str | Sequence[str] | Sequence[Sequence[str]]
"""Blocks as tuples of names, one such tuple, "auto", or False for none."""
AUTO = "auto"


def find_joint(network: Network, joint: Joint | None) -> tuple[JointBlock, ...]:
    """Return the blocks that were asked for.

    Raises
    ------
    ModelError
        If the argument makes no sense, or a variable cannot be in a block.
    """
    if joint is None or joint is False:
        return ()
    if isinstance(joint, str) and joint == AUTO:
        return tuple(found_blocks(network))
    blocks, groups, seen = [], names_of(joint), set[str]()
    for names in groups:
        check_names(network, names, seen)
        seen |= set(names)
    for names in groups:
        blocks.append(block_of(network, [v for v in network.hidden.values() if v.name in names]))
    return tuple(blocks)


def block_of(network: Network, variables: Sequence[Variable]) -> JointBlock:
    """Return the block of some variables, one of which may be the precision of all of its rows."""
    precisions = [v for v in variables if v.family.precision is not None]
    normals = [v for v in variables if v.family.precision is None]
    for variable in normals:
        reason = refusal(network, variable)
        if reason:
            raise ModelError(f"joint= cannot have '{variable.name}': {reason}")
    if not normals or len(precisions) > 1:
        raise ModelError(
            f"joint= has a block of {quoted([v.name for v in variables])}, and a block has Normals "
            "or MvNormals, with one Gamma or Wishart at most, the precision of all of its rows"
        )
    block = JointBlock.of(network, normals)
    block.check_size()
    return block.with_precision(precisions[0]) if precisions else block


def names_of(joint: Any) -> list[tuple[str, ...]]:
    """Return the names of each block; one tuple of names is one block."""

    def is_list(value: Any) -> bool:
        return isinstance(value, list | tuple)

    groups = joint if is_list(joint) and joint and all(map(is_list, joint)) else [joint]
    for names in groups:
        if not is_list(names) or not names or not all(isinstance(n, str) for n in names):
            raise ModelError(
                f'joint must be blocks of names, as [("mu", "school")], "auto" or False, not '
                f"{shown(joint)}"
            )
    return [tuple(names) for names in groups]


def check_names(network: Network, names: Sequence[str], seen: set[str]) -> None:
    """Refuse names that are not those of hidden variables, or that stand twice."""
    for name in names:
        if name not in network.hidden:
            what = "observed" if name in network.observed else "no variable of the model"
            raise ModelError(
                f"joint= names {shown(name)}, which is {what}; the hidden variables are "
                f"{quoted(list(network.hidden))}"
            )
        if name in seen or list(names).count(name) > 1:
            raise ModelError(f"joint= names '{name}' twice; a variable is in one block at most")


def found_blocks(network: Network) -> Iterator[JointBlock]:
    """Yield the blocks of a network: variables that qualify, and meet in some row."""
    fitting = [v for v in network.hidden.values() if not refusal(network, v)]
    for group in connected(network, fitting):
        block = JointBlock.of(network, group)
        while block.densest is not None:
            block = block.without_densest()
        precisions = {
            v.name: v
            for table in block.tables
            if "tau" in table.conditional.slots
            for v in table.conditional.slots["tau"].variables
            if v.hidden
        }
        if len(precisions) == 1:
            (name,) = precisions
            with suppress(ModelError):
                block = block.with_precision(network.hidden[name])
        if block.pairs or block.pair is not None:
            yield block
        elif block.left_out:
            reasons = "; ".join(f"'{name}', {reason}" for name, reason in block.left_out.items())
            message = f'joint="auto" leaves q a product: there is no joint block without {reasons}'
            warnings.warn(message, UserWarning, stacklevel=2)


def refusal(network: Network, variable: Variable) -> str:
    """Return why a variable cannot be in a joint block; "" if it can."""
    name, given = variable.name, variable.conditional
    if isinstance(variable.family, PartlyKnown):
        return "it is observed in part"
    if variable.family.gaussian is None:
        kind = type(variable.family).__name__
        return f"it is a {kind}, and blocks have Normals, MvNormals and their precision"
    if given.selector is not None:
        return "its prior is a mixture"
    if variable.size == 0:
        return "it has no elements"
    if name in network.chains:
        return "it is a chain, whose q is joint along each sequence already"
    if name in network.learned:
        return "earlier rows have taught something about it; fit all rows together"
    for edge in network.edges[name]:
        table = edge.conditional.variable.name
        reason = f"the chain '{table}' depends on it" if table in network.chains else ""
        reason = reason or edge_refusal(edge)
        if reason:
            return reason
    return ""


def edge_refusal(edge: Edge) -> str:
    """Return why the rows of a table are not quadratic in a variable; "" if they are."""
    table, parent = edge.conditional.variable.name, edge.parent
    if edge.choosing or edge.slot is not edge.conditional.slots.get(mean_of(edge.conditional)):
        return f"it is not in the mean of '{table}'"
    if isinstance(edge.slot, Single):
        return ""
    if not isinstance(edge.slot, Linear | VectorMean):
        return f"no joint q is computed for means like that of '{table}'"
    for term in edge.slot.terms:
        if term.reader(parent) is not None:
            others = [r.variable for r in term.readers if r.variable is not parent]
            hidden = [v.name for v in others if v.hidden]
            if hidden:
                return (
                    f"the mean of '{table}' multiplies it by '{hidden[0]}', which is hidden too; "
                    "coefficients must be known"
                )
    return ""


def check_joint_method(method: Method | None, policy: Policy | None) -> Method:
    """Return the method of a fit with joint blocks; refuse those that draw rows."""
    if policy is not None and policy != Constant(1.0):
        raise ModelError("joint= takes steps of unit length; leave out steps=")
    if method is None:
        return Growing(1.0)
    if not (method.unit_steps and method.reads_all(1)) or method.over is not None:
        raise ModelError(
            f"joint= needs all rows in every iteration, and {type(method).__name__} draws some; "
            "use FullVB() or Growing(first=1), or leave out the method"
        )
    return method
