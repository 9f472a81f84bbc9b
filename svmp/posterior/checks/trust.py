"""`Fit.diagnose`: in a paragraph, whether to trust the means, the variances and the bound of a fit.

Three numbers are behind it: PSIS k-hat (psis.py), the sds of linear response beside those of q
(linear_response.py), and how far weighted means are from those of q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.program.joint_blocks import found_blocks
from svmp.inference.running.seeds import Seed
from svmp.network.model import Model
from svmp.network.variable import Variable
from svmp.posterior.checks.psis import DRAWS, GOOD, USABLE, Importance, importance
from svmp.posterior.record.covariance import Covariance
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.corrected import correctable, factors_of_rates
from svmp.posterior.uncertainty.linear_response import linear_response
from svmp.posterior.uncertainty.message_map import MessageMap
from svmp.posterior.uncertainty.shown import corrected_call

FEW = 50
"""Most numbers whose sds are computed by linear response."""
NARROW = 1.1
"""Up to this ratio of sds, variances are called right."""
SHIFTED = 0.5
"""Up to this shift of weighted means, in sds, means are called right."""


@dataclass(frozen=True)
class Ratio:
    """The variable whose sd under q is smallest beside that of linear response."""

    name: str
    ratio: float
    q: float
    response: float


def diagnose(
    fit: RunRecord,
    model: Model,
    draws: int = DRAWS,
    seed: Seed = 0,
    response: Covariance | None = None,
) -> str:
    """Return a paragraph on a fit; see `Fit.diagnose`. `response` has what the fit shows anyway."""
    found = importance(fit, model, draws, seed)
    sentences = [about_status(fit), about_q(found)]
    sentences += [
        about_means(fit, found),
        about_variances(fit, found, response),
        about_bound(fit, found),
    ]
    return " ".join(sentences)


def about_status(fit: RunRecord) -> str:
    """Say how the run ended."""
    if fit.status == "converged":
        return "The fit converged."
    return (
        f"The fit did not converge (its status is '{fit.status}'), so that all numbers below are "
        "of a q that is still moving: fit on with init=fit first."
    )


def about_q(found: Importance) -> str:
    """Say how far q is from the posterior."""
    size = sum(
        len(found.density.network.rows(v)) * int(np.prod(v.shape[len(v.plate.shape) :], dtype=int))
        for v in found.density.drawn.values()
    )
    numbers = f"{size:,} hidden number" + "s" * (size != 1)
    if found.khat == 0:
        return f"q is the posterior of its {numbers}, up to rounding."
    if found.khat > USABLE:
        near = "too far from the posterior for importance weights to repair it"
    else:
        well = " well" * (found.khat <= GOOD)
        near = f"near enough to the posterior for importance weights to work{well}"
    return f"Over its {numbers}, q is {near} (PSIS k-hat {found.khat:.2f})."


def about_means(fit: RunRecord, found: Importance) -> str:
    """Say whether to trust the means."""
    if fit.status != "converged":
        return "Do not trust its means yet."
    if found.khat == 0:
        return "Trust its means."
    name, shift = largest_shift(found)
    moved = f"importance weights move them by at most {shift:.2f} sd ('{name}')"
    if found.khat > USABLE:
        unchecked = (
            "Its means could not be checked, since weights cannot tell how far they are off: "
            "compare them with svmp.calibrate or with a sampler where they matter."
        )
        if any(table.conditional.factor.convex for table in tables_of(found)):
            unchecked += (
                " Its logits are fitted by a bound, under which effects of groups with few rows, "
                "and coefficients beside them, are too near 0, by more than their sds if groups "
                "differ much."
            )
        return unchecked
    if shift <= SHIFTED:
        return f"Trust its means: {moved}."
    return f"Take its means with care: importance weights move that of '{name}' by {shift:.2f} sd."


def largest_shift(found: Importance) -> tuple[str, float]:
    """Return the variable whose weighted mean is farthest from that of q, in sds."""
    weights, shifts = np.exp(found.log_weights), {}
    for name, variable in found.density.drawn.items():
        if variable.family.nominal:
            continue
        natural, rows = found.density.q.natural[name], found.density.network.rows(variable)
        sd = np.sqrt(variable.family.var(natural)[rows])
        weighted = np.tensordot(weights, found.draws[name][:, rows], axes=1)
        plain = found.draws[name][:, rows].mean(axis=0)  # the same draws: less noise than the mean
        shifts[name] = float((np.abs(weighted - plain) / np.where(sd > 0, sd, 1)).max(initial=0.0))
    worst = max(shifts, key=lambda name: shifts[name], default="")
    return worst, shifts.get(worst, 0.0)


def tables_of(found: Importance) -> list[Variable]:
    """Return all tables of a network."""
    network = found.density.network
    return [*network.hidden.values(), *network.observed.values()]


def about_variances(fit: RunRecord, found: Importance, response: Covariance | None) -> str:
    """Say whether to trust the variances."""
    if found.khat == 0:
        return "Trust its variances."
    if fit.joint:
        names = ", ".join(f"'{name}'" for block in fit.joint for name in block.names)
        said = f"Its variances account for the dependence between {names}; k-hat checks them."
        if any(table.conditional.factor.convex for table in tables_of(found)):
            said += (
                " Under the bound of logits they are too small: those of fit.corrected(model) of a "
                "fit without joint= are wider."
            )
        return said
    try:
        ratio = worst_ratio(MessageMap(found.density.network, found.density.q))
    except ModelError as error:
        return f"Its variances could not be checked: {error}."
    if ratio is None:
        return (
            f"Its variances were not checked: every variable has more than {FEW} numbers; ask "
            "fit.covariance for some."
        )
    if ratio.ratio <= NARROW:
        return (
            "Trust its variances: linear response has sds of at most "
            f"{ratio.ratio:.2f} times those of q ('{ratio.name}')."
        )
    blocks = [
        block
        for block in found_blocks(found.density.network)
        if ratio.name in block.names
        and not any(table.conditional.factor.convex for table in block.tables)
    ]
    possible = {*correctable(fit.posteriors)} - factors_of_rates(found.density.network)
    remedy = corrected_call(fit) if ratio.name in possible else ""
    remedy = remedy or f'fit.covariance(["{ratio.name}"], model=model)'
    if response is not None and ratio.name in response.names:
        remedy = "linear response, which the fit shows"
    joint = ', or fit with joint="auto"' * bool(blocks)
    return (
        f"Do not trust its variances: that of '{ratio.name}' is too small, with an sd of "
        f"{ratio.q:.3g} where linear response has {ratio.response:.3g}, {ratio.ratio:.1f} times as "
        f"much; take those of {remedy}{joint}."
    )


def worst_ratio(phi: MessageMap) -> Ratio | None:
    """Return the variable whose sd is most too small, among those of few numbers."""
    network, names, total = phi.network, [], 0
    for name, variable in network.hidden.items():
        numbers = int(np.prod(variable.shape, dtype=int))
        whole = len(network.rows(variable)) == variable.size
        if whole and total + numbers <= FEW and not variable.family.nominal:
            names.append(name)
            total += numbers
    if not names:
        return None
    with np.errstate(all="ignore"):
        response = linear_response(phi, names, matched=True)
    ratios = []
    for name in names:
        own: Array = np.sqrt(network.hidden[name].family.var(phi.q.natural[name]).ravel())
        other = response.std(name).ravel()
        place = int(np.argmax(other / own))
        ratios.append(
            Ratio(name, float(other[place] / own[place]), float(own[place]), float(other[place]))
        )
    return max(ratios, key=lambda r: r.ratio)


def about_bound(fit: RunRecord, found: Importance) -> str:
    """Say how far the bound is from the evidence."""
    gap = found.log_evidence - fit.bound
    if found.khat == 0:
        return f"Its bound, {fit.bound:,.6g}, is the log evidence."
    if found.khat > USABLE:
        return (
            f"Its bound, {fit.bound:,.6g}, is at least {max(gap, 0.0):.2g} nats below the log "
            "evidence, by an estimate that misses what q misses: trust only differences of bounds "
            "that are larger."
        )
    return (
        f"Its bound, {fit.bound:,.6g}, is about {max(gap, 0.0):.2g} nats below the log evidence: "
        "trust differences of bounds that are larger."
    )
