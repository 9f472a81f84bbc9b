"""Trials of laws on drawn networks, with shrunk failures: `make laws ARGS="--seconds 60"`.

Each trial draws a law and a network. A failure is shrunk by Hypothesis, and printed as code that
repeats it; the same failure is not shrunk again.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import hypothesis.internal.conjecture.engine as engine
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from .case import Broken, Case, Refused, Skip
from .grammar import networks
from .known import reason
from .laws import LAWS, chooses, linear_gaussian, multiplied
from .spec import Spec

SHRINKING = 40
"""Most seconds of shrinking a failure."""


@dataclass
class Failure:
    law: str
    signature: str
    message: str
    script: str
    trace: str = ""


@dataclass
class Report:
    """What was tried, and what failed."""

    trials: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        def lines(title: str, counts: Counter[str]) -> list[str]:
            return [f"{title}:", *(f"  {n:8,}  {what}" for what, n in counts.most_common())]

        held = Counter({n: self.trials[n] - self.skipped[n] for n in self.trials})
        found = [f"{sum(self.trials.values()):,} trials, {sum(held.values()):,} with an answer"]
        found += lines("by feature", self.features) + lines("by law", held)
        found += lines("refused", self.refused) + lines("known failures", self.known)
        if os.environ.get("LAWS_COST"):
            found += [f"  {s:8.2f} s  {what}" for what, s in self.cost.most_common(12)]
        for number, failure in enumerate(self.failures, 1):
            more = self.again[failure.signature]
            found += ["", f"--- failure {number}: {failure.law} ({more:,} more like it)"]
            found += [failure.message, "", failure.script, failure.trace]
        return "\n".join([*found, f"{len(self.failures)} failures"])


def features(spec: Spec) -> set[str]:
    """Return what a network has."""
    found = {d.kind for d in spec.declarations}
    found |= {f"Mixture of {d.component}" for d in spec.declarations if d.kind == "Mixture"}
    rows = max([n for d, n in spec.sizes.items() if d.startswith("row")], default=0)
    found |= {
        name
        for name, has in {
            "one row": rows == 1,
            "300 rows or more": rows >= 300,
            "logits": any(d.has("logit") for d in spec.declarations),
            "missing values": any(d.missing for d in spec.declarations),
            "partly observed parent": any(
                d.missing and spec.is_parent(d.name) for d in spec.declarations
            ),
            "labels": bool(spec.labels),
            "products of variables": multiplied(spec),
            "choices": chooses(spec),
            "linear Gaussian": linear_gaussian(spec),
            "several sequences": any(d.column("sequence") for d in spec.declarations),
            "inputs of a chain": any(d.column("u") for d in spec.declarations),
            "switched dynamics": any(d.has("switch") for d in spec.declarations),
            "two tables": len(spec.observed) > 1,
            "barren": any(d.name.startswith("later") for d in spec.declarations),
        }.items()
        if has
    }
    return found


def signature(law: str, message: str, cause: BaseException | None) -> str:
    """Return what two failures have in common that are one: the law, or the line that raised."""
    if cause is not None:
        frame = traceback.extract_tb(cause.__traceback__)[-1]
        return f"{type(cause).__name__} in {frame.filename}:{frame.lineno}"
    return f"{law}: {' '.join(re.findall(r'[a-z]{3,}', message))[:60]}"


def tried(
    seconds: float, first_seed: int, only: str = "", examples: int = 10**9, having: str = ""
) -> Report:
    """Try laws on drawn networks for some seconds, or for a number of trials.

    `only` selects laws by a pattern of their names, and `having` networks by one of their features.
    """
    report, seen = Report(), set()
    laws = tuple(law for law in LAWS if re.search(only, law.__name__))
    end, number = time.monotonic() + seconds, 0
    engine.MAX_SHRINKING_SECONDS = SHRINKING
    # A mutation is often the same network: each example is drawn anew.
    engine.ConjectureRunner.generate_mutations_from = lambda self, data: None
    while time.monotonic() < end and sum(report.trials.values()) < examples:
        left = min(20, examples - sum(report.trials.values()))
        of = first_seed * 100_000 + number
        last = one_run(report, seen, laws, having, of, left)
        number += 1
        if last is not None:
            seen.add(last.signature)
            report.failures.append(last)
            print(f"failure of {last.law}: {last.message[:300]}", file=sys.stderr, flush=True)
            if path := os.environ.get("LAWS_FOUND"):
                with open(path, "a") as file:
                    file.write(f"\n--- {last.law}\n{last.message}\n\n{last.script}\n{last.trace}\n")
    return report


def one_run(
    report: Report, seen: set[str], laws: tuple[Callable[[Case], None], ...], having: str, of: int,
    count: int,
) -> Failure | None:  # fmt: skip
    """Run Hypothesis once; return the shrunk failure, if there was a new one."""
    found: list[Failure] = []
    target: list[str] = []

    @seed(of)
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    @given(st.data())
    def trial(data: st.DataObject) -> None:
        law = data.draw(st.sampled_from(laws))
        spec = data.draw(networks())
        assume(not having or any(re.search(having, f) for f in features(spec)))
        case = Case(spec, data.draw)
        started = time.process_time()
        try:
            check(report, case, law, count_it=not target)
        except Broken as broken:
            message = str(broken)
            why = reason(law.__name__, spec, message)
            cause = broken.__cause__
            which = signature(law.__name__, message, cause)
            if why is not None:
                report.known[why] += not target
                return
            if which in seen:
                report.again[which] += not target
                return
            if target and which != target[0]:
                return
            target[:] = [which]
            trace = "" if cause is None else "".join(traceback.format_exception(cause)[-6:])
            found[:] = [Failure(law.__name__, which, message, case.script(), trace)]
            raise
        finally:
            case.close()
            report.cost[law.__name__] += time.process_time() - started

    try:
        trial()
    except Broken:
        return found[0]
    return None


def check(report: Report, case: Case, law: Callable[[Case], None], count_it: bool) -> None:
    """Try a law, and count what was tried."""
    if count_it:
        report.trials[law.__name__] += 1
        report.features.update(features(case.spec))
    try:
        with case.watched(law.__name__):
            law(case)
    except Refused as refused:
        text = re.sub(r"'\w+'|[-\d.]+", "..", str(refused))[:110]
        report.refused[text] += count_it
        report.examples.setdefault(text, f"{law.__name__}: {refused}\n{case.script()}")
        report.skipped[law.__name__] += count_it
    except Skip:
        report.skipped[law.__name__] += count_it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--laws", default="", help="only the laws whose names match")
    parser.add_argument("--having", default="", help="only networks with a feature that matches")
    given = parser.parse_args()
    report = tried(given.seconds, given.seed, given.laws, having=given.having)
    print(report)
    if path := os.environ.get("LAWS_REFUSED"):
        with open(path, "w") as file:
            file.write("\n\n--- ".join(report.examples.values()))
    sys.exit(bool(report.failures))


if __name__ == "__main__":
    main()
