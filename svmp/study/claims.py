"""The paper's claims, each with a verdict from runs and checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from svmp.study import answer, checks, figures, thresholds
from svmp.study.figures import listed
from svmp.study.on_paper import short
from svmp.study.runner import Runner
from svmp.study.runs import Result, fraction

Verdict = Literal["holds", "differs", "answered", "undecided", "not run"]
"""A claim is undecided if the budget was too small to test it."""
EXACT = 1e-9
"""Largest relative error between two exact computations of a number."""
NUMERICAL = 1e-5
"""Largest relative error where one of the two is by finite differences."""
WORDS = {
    "diverged": "diverge",
    "far off": "fall, and are still far off at the end",
    "slow": "do not fall, but gain too little",
    "converged": "converge",
}
TOO_FEW = "The budget is too small to decide."
WORTH = 0.8
"""The default is ahead of full VB if it needs less than this share of its accesses."""
SHARES = (2, 4)
"""With unit steps held, each of these fractions 1/n of the children is read."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict, the evidence, and the reason if it differs."""

    number: int
    claim: str
    verdict: Verdict
    evidence: str
    why: str = ""


def run(runner: Runner) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Make the runs that the claims are about, and judge each claim."""
    _, two = figures.run(runner, "figure2")
    _, three = figures.run(runner, "figure3")
    cells = thresholds.run(runner)[1]["cells"]
    policies = answer.run(runner)[1]
    (full,) = runner.results([runner.spec("full", 3, policy="unit")])
    found = [
        full_vb_rises(full),
        small_c_diverges(two["runs"], runner.settings.kappa),
        first_step(3, cells, "a"),
        first_step(4, cells, "b"),
        batches_at_once(three["runs"]),
        batches_together(cells),
        batches_are_slower(runner, two["runs"], three["runs"]),
        unbiased(),
        natural_gradient(),
        held_steps(runner, full),
        open_question(policies),
    ]
    rows = [asdict(claim) for claim in found]
    return pl.DataFrame(rows), {"claims": rows}


def full_vb_rises(full: Result) -> Claim:
    """Claim 1."""
    bound = full.trace["bound"]
    rises = np.diff(bound)
    least = float((rises / np.abs(bound[1:])).min(initial=np.inf))
    told = [n for n in (1, 11) if n < len(bound)] + [len(bound)]
    after = ", ".join(f"{short(bound[n - 1])} after {n}" for n in told)
    holds = least >= -EXACT
    fell = int((rises < 0).sum())
    return Claim(
        1,
        "Full VB raises the bound in every sweep.",
        "holds" if holds else "differs",
        f"Of {len(rises)} sweeps after the first, {len(rises) - fell} raised it: {after}.",
        "" if holds else f"The largest fall was {-least:.1e} of the bound.",
    )


def small_c_diverges(runs: list[dict[str, Any]], kappa: float) -> Claim:
    """Claim 2."""
    said, holds = [], True
    for option in "ab":
        ends: dict[str, list[int]] = {end: [] for end in WORDS}
        for r in runs:
            if r["method"] == "children" and r["option"] == option:
                ends[r["ending"]].append(r["size"])
        parts = [f"C = {listed(sizes)} {WORDS[end]}" for end, sizes in ends.items() if sizes]
        said.append(f"({option}): {'; '.join(parts)}")
        small, large = ends["diverged"], ends["converged"]
        holds &= bool(small and large) and max(small) < min(large)
    return Claim(
        2,
        f"Algorithm 1 with steps t^-{kappa:g} diverges beyond recovery when C is small.",
        "holds" if holds else "differs",
        ". ".join(said) + ".",
        "" if holds else "No size below which all diverge and above which all converge.",
    )


def first_step(number: int, cells: list[dict[str, Any]], option: str) -> Claim:
    """Claims 3 and 4: the run from the paper's own first step."""
    papers = thresholds.papers("children", option, 1)
    assert papers is not None
    step = fraction(papers)
    claim = f"C = 1, option ({option}), converges when it starts from {step}."
    wanted = {"method": "children", "option": option, "size": 1}
    cell = next((c for c in cells if c.items() >= wanted.items()), None)
    if cell is None:
        return Claim(number, claim, "not run", "C = 1 was not among the sizes that were run.")
    end = cell["tried"][step]
    here = f"The largest first step that converges on these data: {thresholds.found(cell)}."
    if end == "converged":
        return Claim(number, claim, "holds", f"It does. {here}")
    if end == "slow":
        return Claim(number, claim, "undecided", f"It rises, but slowly. {here}", TOO_FEW)
    said = {"diverged": "It diverges.", "far off": "It falls, and is far off at the end."}[end]
    return Claim(number, claim, "differs", f"{said} {here}", "The paper used other ratings.")


def batches_at_once(runs: list[dict[str, Any]]) -> Claim:
    """Claim 5."""
    chosen = [r for r in runs if r["method"] == "batch" and r["option"] == "a"]
    good = [r["size"] for r in chosen if r["ending"] == "converged"]
    bad = [r for r in chosen if r["ending"] != "converged"]
    evidence = f"C_global = {listed(good)}: all converge" if good else "None converges"
    ends = [r["bound"] for r in chosen if r["ending"] == "converged"]
    if good:
        accesses = max(r["accesses"] for r in chosen)
        evidence += (
            f", at {short(min(ends))} to {short(max(ends))} after {short(accesses)} accesses"
        )
    if bad:
        evidence += "; " + ", ".join(f"{r['size']} {r['ending']}" for r in bad)
    verdict: Verdict = "differs" if bad else "holds"
    if bad and all(r["ending"] == "slow" for r in bad):
        verdict = "undecided"
    return Claim(
        5,
        "Algorithm 2, option (a), converges from a unit first step for every C_global.",
        verdict,
        f"{evidence}.",
        {"differs": "The sizes that did not converge are listed.", "undecided": TOO_FEW}.get(
            verdict, ""
        ),
    )


def batches_together(cells: list[dict[str, Any]]) -> Claim:
    """Claim 6: unit first steps fail, and smaller ones converge."""
    claim = (
        "Algorithm 2, option (b), converges only from small first steps: in the paper from 1/32, "
        "for some C_global from less."
    )
    chosen = [c for c in cells if c["method"] == "batch" and c["option"] == "b"]
    if not chosen:
        return Claim(6, claim, "not run", "No C_global was among the sizes that were searched.")
    steps = ", ".join(f"{thresholds.found(c)} (C_global = {c['size']})" for c in chosen)
    evidence = f"The largest first steps that converge on these data: {steps}."
    unit = [c["size"] for c in chosen if c["rho1"] == 1]
    if unit:
        why = f"C_global = {listed(unit)} converges from a unit first step."
        return Claim(6, claim, "differs", evidence, why)
    if any(c["rho1"] for c in chosen):
        return Claim(6, claim, "holds", evidence)
    if any("slow" in c["tried"].values() for c in chosen):
        return Claim(6, claim, "undecided", evidence, TOO_FEW)
    return Claim(6, claim, "differs", evidence, "No first step converges.")


def batches_are_slower(
    runner: Runner, one: list[dict[str, Any]], two: list[dict[str, Any]]
) -> Claim:
    """Claim 7: the bounds of the two algorithms after the same number of accesses."""
    claim = "Algorithm 2 converges much more slowly than Algorithm 1 per access."
    at = min(r["accesses"] for r in two if r["status"] != "diverged")
    first = _bounds(runner, one, "children", 0, at)
    second = _bounds(runner, two, "batch", 1, at)
    if not first or not second:
        return Claim(7, claim, "not run", "One of the two has no run that converges.")
    evidence = (
        f"After {short(at)} accesses the runs of Algorithm 1 that converge are at a median of "
        f"{short(float(np.median(first)))}, the best at {short(max(first))}; those of Algorithm 2 "
        f"at a median of {short(float(np.median(second)))}, the best at {short(max(second))}."
    )
    behind = {
        "the median": bool(np.median(second) < np.median(first)),
        "the best": max(second) < max(first),
    }
    holds = all(behind.values())
    ahead = " and ".join(what for what, so in behind.items() if not so)
    why = "" if holds else f"Algorithm 2 is not behind in {ahead}."
    return Claim(7, claim, "holds" if holds else "differs", evidence, why)


def _bounds(
    runner: Runner, runs: list[dict[str, Any]], method: Any, which: int, at: float
) -> list[float]:
    """Return the bounds after some accesses of the runs from unit steps that converge."""
    found = []
    for r in runs:
        if r["method"] == method and r["ending"] == "converged" and r["rho1"] == 1:
            spec = runner.spec(method, which, size=r["size"], option=r["option"])
            result = runner.find(spec)
            assert result is not None
            found.append(result.bound_at(at))
    return found


def unbiased() -> Claim:
    """Claim 8."""
    error, count = checks.bias()
    return Claim(
        8,
        "The sampled update is unbiased: E[λ_temp] = λ*.",
        "holds" if error <= EXACT else "differs",
        f"Over all {count:,} samples of children in a small network, the mean of λ_temp is λ* "
        f"up to {error:.0e} of its size.",
    )


def natural_gradient() -> Claim:
    """Claim 9."""
    error, count = checks.gradient_error()
    off = checks.fisher_off_diagonal()
    holds = error <= NUMERICAL and off <= EXACT
    return Claim(
        9,
        "The natural gradient is λ* − λ, the plain one cov[φ] (λ* − λ), and "
        "the Fisher matrix is block-diagonal over the factors.",
        "holds" if holds else "differs",
        f"The bound's gradient by differences is cov[φ] (λ* − λ) up to {error:.0e} for all "
        f"{count} factors of a small network; between factors the Fisher matrix has entries of at "
        f"most {off:.0e} of those within one.",
    )


def held_steps(runner: Runner, full: Result) -> Claim:
    """Claim 10, a practice that is tried here."""
    tries = [("a", share) for share in SHARES] + [("b", SHARES[0])]
    results = runner.results(
        runner.spec("share", 0, size=share, option=option, policy="hold-then-decay")
        for option, share in tries
    )
    ends = [r.ending(full) for r in results]
    said = ", ".join(
        f"{end} with one of {share} children in option ({option})"
        for (option, share), end in zip(tries, ends, strict=True)
    )
    holds = "converged" in ends[: len(SHARES)]
    return Claim(
        10,
        "Xbox: unit steps for ten iterations, then slowly decreasing, with a C that varies with "
        "usage.",
        "holds" if holds else "differs",
        f"With unit steps held for ten iterations, runs {said}.",
        "" if holds else "On these data so many children are too few.",
    )


def open_question(about: dict[str, Any]) -> Claim:
    """Claim 11."""
    gain = about["gain"]
    mine, sweeps = gain["passed"]["default"], gain["sweeps"]
    claim = (
        "Open: how much of the baby (well-scaled steps) goes with the bath water (exact gradients)?"
    )
    if mine is None:
        evidence = f"In the accesses of {sweeps:.0f} sweeps the default did not pass full VB."
        return Claim(11, claim, "differs", evidence)
    fewer = mine["sweeps"] < WORTH * sweeps
    return Claim(
        11,
        claim,
        "answered",
        f"None has to{'' if fewer else ', though little is gained on these data'}. A sample that "
        "grows, with exact gradients and unit steps on it, passes full VB's last bound after "
        f"{mine['sweeps']:.1f} sweeps' worth of accesses and {mine['seconds']:.2f} s; full VB "
        f"needs {sweeps:.0f} sweeps and {gain['passed']['full']['seconds']:.2f} s.",
    )
