"""A run that is asked for: one call of `svmp.fit`, to be made or to be exported as Python."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import svmp
from svmp.errors import ModelError
from svmp.inference.running.recording import Watch
from svmp.lab.choices import DEFAULT, algorithms, policies
from svmp.lab.data import RatingsFile, Source, find_sources
from svmp.lab.fields import InvalidFields, Value, code, number, read_fields
from svmp.study.choices import takes_option
from svmp.study.netflix import matrix_factorization

POINTS = 300
"""About how many exact bounds a run computes, enough for a smooth line."""


@dataclass(frozen=True)
class Call:
    """A method or a step policy with its arguments."""

    cls: type
    arguments: Mapping[str, Value]

    def __str__(self) -> str:
        name = self.cls.__name__
        owner = "svmp" if name in svmp.__all__ else self.cls.__module__
        listed = ", ".join(f"{name}={code(value)}" for name, value in self.arguments.items())
        return f"{owner}.{name}({listed})"


def make(call: Call | None) -> Any:
    """Return the object that a call makes, or None without a call."""
    if call is None:
        return None
    return call.cls(**{name: number(value) for name, value in call.arguments.items()})


@dataclass(frozen=True)
class RunRequest:
    """Everything that determines a run: values by field, and the source of the ratings."""

    values: Mapping[str, Value]
    source: Source

    @classmethod
    def from_json(cls, order: Mapping[str, Any]) -> RunRequest:
        """Return the request that `to_json` described."""
        file = order["file"] and RatingsFile(**order["file"])
        return cls(order["values"], find_sources(file)[order["values"]["data"]])

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON types, for the worker process."""
        file = asdict(self.source) if isinstance(self.source, RatingsFile) else None
        return {"values": dict(self.values), "file": file}

    @property
    def numbers(self) -> dict[str, Any]:
        """The values, with fractions as numbers."""
        return {name: number(value) for name, value in self.values.items()}

    @property
    def method(self) -> Call | None:
        """The algorithm; None for svmp's default."""
        name = str(self.values["algorithm"])
        if name == DEFAULT:
            return None
        cls = algorithms()[name]
        arguments = {n: self.values.get(n, setting.default) for n, setting in cls.settings.items()}
        if takes_option(cls):
            arguments["option"] = self.values["option"]
        return Call(cls, arguments)

    @property
    def steps(self) -> Call | None:
        """The step policy; None where steps have unit length."""
        if "policy" not in self.values:
            return None
        cls = policies()[str(self.values["policy"])]
        return Call(cls, {name: self.values[name] for name in cls.settings})

    @property
    def options(self) -> dict[str, Any]:
        """The other arguments of `svmp.fit`."""
        options = {"seed": self.numbers["seed"], "max_sweeps": self.numbers["sweeps"]}
        method = make(self.method)
        if method is None or not method.reads_all(1):  # else the bound follows every sweep anyway
            options["bound_every"] = max(1, int(self.iterations / POINTS))
        return options

    @property
    def iterations(self) -> float:
        """About how many iterations the budget allows; 0 if their cost is not constant."""
        nodes, ratings = self.source.size(self.numbers)
        read = max(nodes * self.numbers.get("C", 0), 2 * self.numbers.get("size", 0))
        each = min(read, 2 * ratings)
        return 2 * ratings * self.numbers["sweeps"] / each if each else 0.0

    def run(self, watch: Watch) -> svmp.Fit:
        """Make the run."""
        model = matrix_factorization(self.source.load(self.numbers), self.numbers["factors"])
        method, steps = make(self.method), make(self.steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", svmp.DivergenceWarning)  # the page shows it
            return svmp.fit(model, method, steps=steps, **self.options, progress=False, watch=watch)

    def script(self) -> str:
        """Return the run as Python that gives the same bits."""
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
        method, steps = make(self.method), make(self.steps)
        if method is None:
            return "The default, nothing to tune"
        if steps is None:
            return str(method.label)
        return f"{steps.method_at(method, 1).label}, {steps.label}"


def read_request(given: object, sources: Mapping[str, Source]) -> RunRequest:
    """Check what the page sends; raise `InvalidFields` with a sentence for each wrong field."""
    values = read_fields(given, sources)
    request = RunRequest(values, sources[str(values["data"])])
    try:
        method, steps = make(request.method), make(request.steps)
        if steps is not None:
            steps.method_at(method, 1)
    except ModelError as error:
        sentence = str(error).partition(";")[0]  # what follows is about Python arguments
        first = sentence.split()[0]
        fallback = "policy" if "policy" in values else "algorithm"
        raise InvalidFields({first if first in values else fallback: sentence}) from None
    return request
