"""A run before it is run: one call of `svmp.fit`, to be made or to be written down as Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import svmp
from svmp.errors import ModelError
from svmp.inference.recording import Watch
from svmp.lab.data import RatingsFile, Source, find_sources
from svmp.lab.fields import POLICIES, Refused, Value, code, number, read_fields
from svmp.study.netflix import matrix_factorization

POINTS = 300
"""About how many exact bounds a run computes: enough for a picture that moves."""


@dataclass(frozen=True)
class Call:
    """A call of one of svmp's own classes."""

    name: str
    arguments: Mapping[str, Value]

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={code(value)}" for name, value in self.arguments.items())
        return f"svmp.{self.name}({listed})"


def make(call: Call | None) -> Any:
    """Make what a call describes, if there is one."""
    if call is None:
        return None
    arguments = {name: number(value) for name, value in call.arguments.items()}
    return getattr(svmp, call.name)(**arguments)


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run: values by field, and where the ratings come from."""

    values: Mapping[str, Value]
    source: Source

    @classmethod
    def of_order(cls, order: Mapping[str, Any]) -> Plan:
        """Return the plan that an order describes."""
        file = order["file"] and RatingsFile(**order["file"])
        return cls(order["values"], find_sources(file)[order["values"]["data"]])

    @property
    def order(self) -> dict[str, Any]:
        """The plan for another process, as JSON can carry it."""
        file = asdict(self.source) if isinstance(self.source, RatingsFile) else None
        return {"values": dict(self.values), "file": file}

    @property
    def numbers(self) -> dict[str, Any]:
        """The values, with fractions worked out."""
        return {name: number(value) for name, value in self.values.items()}

    @property
    def method(self) -> Call | None:
        """The algorithm; None leaves it to svmp."""
        value = self.values
        match value["algorithm"]:
            case "full":
                return Call("FullVB", {})
            case "children":
                return Call("Children", {"C": value.get("C", 1), "option": value["option"]})
            case "batch":
                return Call("Batch", {"size": value["size"], "option": value["option"]})
        return None

    @property
    def steps(self) -> Call | None:
        """The step policy; None where steps have unit length."""
        if "policy" not in self.values:
            return None
        policy = str(self.values["policy"])
        return Call(policy, {name: self.values[name] for name in POLICIES[policy]})

    @property
    def options(self) -> dict[str, Any]:
        """The other arguments of `svmp.fit`."""
        options = {"seed": self.numbers["seed"], "max_sweeps": self.numbers["sweeps"]}
        if self.values["algorithm"] != "full":  # which computes it at every sweep anyway
            options["bound_every"] = max(1, int(self.iterations / POINTS))
        return options

    @property
    def iterations(self) -> float:
        """About how many iterations the budget allows, where each costs the same."""
        nodes, ratings = self.source.size(self.numbers)
        read = {"C": nodes * self.numbers.get("C", 0), "size": 2 * self.numbers.get("size", 0)}
        each = min(max(read.values()), 2 * ratings)
        return 2 * ratings * self.numbers["sweeps"] / each if each else 0.0

    def run(self, watch: Watch) -> svmp.Fit:
        """Do it."""
        model = matrix_factorization(self.source.load(self.numbers), self.numbers["factors"])
        method, steps = make(self.method), make(self.steps)
        return svmp.fit(model, method, steps=steps, **self.options, progress=False, watch=watch)

    def script(self) -> str:
        """Return it as Python that gives the same bits."""
        imports, load = self.source.code(self.numbers)
        arguments = ["model"]
        if self.method is not None:
            arguments.append(str(self.method))
        if self.steps is not None:
            arguments.append(f"steps={self.steps}")
        arguments += [f"{name}={value!r}" for name, value in self.options.items()]
        return "\n".join(
            [
                f'"""{self.label}; K = {self.values["factors"]}."""',
                "",
                "import svmp",
                *imports,
                "from svmp.study.netflix import matrix_factorization",
                "",
                f"ratings = {load}",
                f"model = matrix_factorization(ratings, factors={self.values['factors']})",
                "fit = svmp.fit(",
                *(f"    {argument}," for argument in arguments),
                ")",
                "print(fit.status, fit.bound)",
                "if fit.diagnosis is not None:",
                "    print(fit.diagnosis)",
                "",
            ]
        )

    @property
    def data(self) -> str:
        """The ratings and the model in a few words."""
        return f"{self.source.describe(self.numbers)}, K = {self.values['factors']}"

    @property
    def label(self) -> str:
        """The algorithm and its steps in a few words."""
        value = self.values
        match value["algorithm"]:
            case "full":
                return "Full VB"
            case "default":
                return "The default, nothing to tune"
            case "children":
                most = f", C = {value['C']:,}" if "C" in value else ""
                return f"Algorithm 1 ({value['option']}){most}, {self._pace}"
        return f"Algorithm 2 ({value['option']}), {value['size']:,} a batch, {self._pace}"

    @property
    def _pace(self) -> str:
        value = self.values
        match value["policy"]:
            case "RobbinsMonro" if self.numbers["rho1"] == 1:
                return f"steps t^−{value['kappa']}"
            case "RobbinsMonro":
                return f"from ρ₁ = {value['rho1']}, κ = {value['kappa']}"
            case "HoldThenDecay":
                return f"{value['hold']} unit steps, then t^−{value['kappa']}"
            case "Nodewise":
                return f"node-wise steps, c = {value['c']}, κ = {value['kappa']}"
            case "Grow":
                return f"C grows from {value['start']} by {value['rate']}, c = {value['c']}"
        return f"steps of {value['rho']}"


def read_plan(given: object, sources: Mapping[str, Source]) -> Plan:
    """Check what the page asks for; raise `Refused` with a sentence for each field in the way."""
    values = read_fields(given, sources)
    plan = Plan(values, sources[str(values["data"])])
    try:
        policy = make(plan.steps)
        if policy is not None:
            policy.method_at(make(plan.method), 1)
    except ModelError as error:
        sentence = str(error).partition(";")[0]  # what Python would take is no help in a page
        first = sentence.split()[0]
        raise Refused({first if first in values else "policy": sentence}) from None
    return plan
