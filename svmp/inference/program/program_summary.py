"""The updater of each variable, as a table to print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from svmp.network.tables import html_table


class VariableUpdater(NamedTuple):
    """A hidden variable, its updater, and why it is not a compiled one."""

    variable: str
    updater: str
    reason: str


@dataclass(frozen=True, repr=False)
class ProgramSummary:
    """The updater of each hidden variable under a method.

    Attributes
    ----------
    method
        Name of the method.
    variables
        One entry for each hidden variable, in the order in which they were declared.
    notes
        What the q of each joint block is.
    """

    method: str
    variables: tuple[VariableUpdater, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        name = max((len(s.variable) for s in self.variables), default=0)
        lines = [f"{self.method}"]
        for served in self.variables:
            why = f" (not compiled: {served.reason})" if served.reason else ""
            lines.append(f"  {served.variable:<{name}}  {served.updater}{why}")
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        heads = ("variable", "updater", "not compiled")
        below = html_table(("",), [(line,) for line in self.notes]) if self.notes else ""
        return html_table(heads, self.variables, self.method) + below
