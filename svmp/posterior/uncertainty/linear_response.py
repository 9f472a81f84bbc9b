"""Covariances by linear response (Giordano, Broderick & Jordan 2015).

Tilt the joint density by exp(t h(x)): the derivative of the exact posterior mean of g at t = 0 is
the posterior covariance of g and h. Linear response takes the derivative of q's mean instead,
which sees the dependence between variables that q itself leaves out. At a fixed point
lambda = Phi(m), with V the covariance of the statistics under q and H the derivative of Phi,

    Cov(g, h) = Cov_q(g, h) + c_g . u,    (I - H V) u = H c_h,    c_g = Cov_q(statistics, g),

which for the statistics themselves is (I - V H)^-1 V. At a maximum of the bound the operator
I - H V is symmetric and positive definite in the inner product a . V b, so that the system is
solved by conjugate gradients in it, from products with H and V alone; in a small network by
matrices (response_matrix.py), and in one of medium size by a sparse factorisation
(sparse_response.py).

Where the posterior is Normal, the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.model import Model
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.network.validation import shown
from svmp.posterior.record.covariance import Covariance
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty import sparse_response
from svmp.posterior.uncertainty.covariance_of_q import covariance_of
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.log_scale import matched_gamma
from svmp.posterior.uncertainty.message_map import MessageMap
from svmp.posterior.uncertainty.response_matrix import LARGEST, responses

METHODS = ("linear_response", "q", "mean_field")
MOST = 1000
"""Most numbers whose covariances are computed at once: each takes a solution of its own."""
TOLERANCE = 1e-9
"""A solution has converged when its residual is this share of the right-hand side."""
Tilt = tuple[slice, Array]
"""Where the statistics of an element are in a flat vector, and their covariances with an entry."""
ROUNDING = 1e-6
"""Share by which a variance may be below that of q."""
FIXED = 0.1
"""Largest distance from a fixed point, in standard deviations, at which q counts as one."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries of one variable whose covariances are asked for.

    Attributes
    ----------
    name, shape
        The variable, and the shape of its mean.
    mean
        The means of all entries.
    cross
        Of each entry, where the statistics of its element are in a flat vector, and
        Cov_q(statistics, entry).
    within
        Cov_q of the entries with each other.
    logs
        Of each entry of a Gamma, the same as `cross` for its logarithm, and Var_q of that.
    """

    name: str
    shape: tuple[int, ...]
    mean: Array
    cross: list[Tilt]
    within: Array
    logs: list[tuple[Tilt, float]] = field(default_factory=list)


def covariance(fit: RunRecord, names: Any, model: Model | None, method: Any) -> Covariance:
    """Return the covariances of some variables of a fit; see `Fit.covariance`."""
    if method is not None and method not in METHODS:
        raise ModelError(f"method must be one of {list(METHODS)}, not {shown(method)}")
    if method in METHODS[1:]:
        return covariances_of_q(fit, asked_names(names, fit.posteriors))
    phi = message_map(fit, model)
    listed = asked_names(names, phi.network.hidden)
    with np.errstate(all="ignore"):
        return linear_response(phi, listed, matched=method is None)


def message_map(fit: RunRecord, model: Model | None) -> MessageMap:
    """Return the message map at the q of a fit, which must be a product."""
    if fit.joint:
        raise ModelError(
            f"linear response is for a q that is a product, and this one is joint over "
            f'{list(fit.joint[0].names)}; method="q" has its covariances, or fit without joint='
        )
    if model is None:
        raise ModelError(
            "linear response needs model=, the model of this fit, which fits of large networks do "
            "not keep; fit.corrected(model) has it for all calls"
        )
    return MessageMap(*network_and_q(fit, model, partly_known=True, chains=True))


def covariances_of_q(fit: RunRecord, names: Sequence[str]) -> Covariance:
    """Return the covariances under q, in which elements outside of joint blocks are independent."""
    means = [fit.posteriors[name].mean for name in names]
    shapes, flat = tuple(np.shape(m) for m in means), np.concatenate([np.ravel(m) for m in means])
    matrix = covariance_of(fit.joint, fit.posteriors, names)
    return Covariance(tuple(names), shapes, flat, matrix, "a joint block" if fit.joint else "q")


def gather(asked: Sequence[Entries], matrix: Array) -> Covariance:
    """Return covariances with the names, shapes and means of their variables."""
    names, shapes = tuple(e.name for e in asked), tuple(e.shape for e in asked)
    return Covariance(names, shapes, np.concatenate([e.mean for e in asked]), matrix)


def linear_response(
    phi: MessageMap, names: Sequence[str], whole: bool = True, matched: bool = False
) -> Covariance:
    """Return the covariance matrix of all entries of some variables.

    Parameters
    ----------
    phi
        The message map at the q of a fit.
    names
        The variables.
    whole
        Whether all of their elements must depend on the data. Others are independent of everything,
        with their variance under q.
    matched
        Whether a Gamma has the mean and the variance of the Gamma whose logarithm has the mean of q
        and the variance of linear response (log_scale.py), as in a corrected fit.
    """
    check_fixed_point(phi)
    try:
        phi = phi.followed()
    except FloatingPointError as error:
        raise ModelError(
            f"q of '{error}' is not at a fixed point of this model: its next update would leave "
            "its domain; fit on with init=fit and a smaller tol="
        ) from None
    asked = [entries_of(phi, name, whole) for name in names]
    cross = [c for entries in asked for c in entries.cross]
    logs = [log for entries in asked for log, _ in entries.logs] if matched else []
    owners = [entries.name for entries in asked for _ in entries.cross]
    owners += [entries.name for entries in asked for _ in entries.logs] if matched else []
    added = responses_of(phi, [*cross, *logs], owners)
    within = block_diagonal([entries.within for entries in asked])
    matrix = within + added[: len(cross), : len(cross)]
    matrix = 0.5 * (matrix + matrix.T)
    check_not_below(np.diagonal(matrix), np.diagonal(within), owners)
    found = gather(asked, matrix)
    if not logs:
        return found
    own = np.array([var for entries in asked for _, var in entries.logs])
    wide = own + np.diagonal(added)[len(cross) :]
    check_not_below(wide, own, owners[len(cross) :])
    return on_log_scale(found, asked, phi, wide)


def responses_of(phi: MessageMap, cross: Sequence[Tilt], owners: Sequence[str]) -> Array:
    """Return c_g . u for all pairs of entries, in the way that suits the size of the network."""
    if phi.size <= LARGEST:
        return by_matrices(phi, cross, owners)
    if phi.size <= sparse_response.LARGEST and not phi.network.chains:
        return by_factors(phi, cross, owners)
    return by_products(phi, cross, owners)


def on_log_scale(
    found: Covariance, asked: Sequence[Entries], phi: MessageMap, variances: Array
) -> Covariance:
    """Return covariances in which Gammas have the moments that match those of their logarithms."""
    mean, scale, start, used = found.mean.copy(), np.ones(len(found.mean)), 0, 0
    for entries in asked:
        stop = start + len(entries.mean)
        if entries.logs:
            count = len(entries.logs)
            natural = phi.q.natural[entries.name]
            alpha, beta = matched_gamma(natural, variances[used : used + count])
            mean[start:stop], used = alpha / beta, used + count
            was = np.diagonal(found.matrix)[start:stop]
            scale[start:stop] = np.sqrt(alpha / beta**2 / was)
        start = stop
    return replace(found, mean=mean, matrix=found.matrix * scale[:, None] * scale)


def by_matrices(phi: MessageMap, cross: Sequence[Tilt], owners: Sequence[str]) -> Array:
    """Return c_g . u for all pairs of entries of a small network."""
    tilts = np.zeros((phi.size, len(cross)))
    for j, (place, values) in enumerate(cross):
        tilts[place, j] = values
    try:
        return np.asarray(tilts.T @ responses(phi, tilts))
    except (np.linalg.LinAlgError, ValueError):
        raise ModelError(not_a_maximum(owners[0])) from None


def by_factors(phi: MessageMap, cross: Sequence[Tilt], owners: Sequence[str]) -> Array:
    """Return c_g . u for all pairs of entries of a network of medium size."""
    places = [np.arange(place.start, place.stop) for place, _ in cross]
    columns = np.repeat(np.arange(len(cross)), [len(place) for place in places])
    values = np.concatenate([np.zeros(0), *(values for _, values in cross)])
    tilts = sparse.csr_array(
        (values, (np.concatenate([columns[:0], *places]), columns)), shape=(phi.size, len(cross))
    )
    try:
        return sparse_response.sparse_responses(phi, tilts)
    except np.linalg.LinAlgError:
        raise ModelError(not_a_maximum(owners[0])) from None


def by_products(phi: MessageMap, cross: Sequence[Tilt], owners: Sequence[str]) -> Array:
    """Return c_g . u for all pairs of entries, from products with H and V alone."""
    found = np.empty((len(cross), len(cross)))
    for j, ((place, values), name) in enumerate(zip(cross, owners, strict=True)):
        tilt = np.zeros(phi.size)
        tilt[place] = values
        response = solve(phi.fisher_times, phi.derivative, phi.derivative(tilt), name)
        found[:, j] = [values @ response[place] for place, values in cross]
    return found


def check_not_below(found: Array, own: Array, owners: Sequence[str]) -> None:
    """Refuse variances below those of q, which no maximum of the bound has.

    At a maximum V^-1 - H is positive definite, and the inverse of its diagonal blocks, which are
    at most those of V^-1, is at most the diagonal of its inverse.
    """
    wrong = ~(found >= own * (1 - ROUNDING))
    if wrong.any():
        name = owners[int(np.argmax(wrong))]
        raise ModelError(
            f"the linear response of '{name}' is below its variance under q, which no maximum of "
            "the bound allows; fit on with init=fit and a smaller tol=, or with restarts="
        )


def check_fixed_point(phi: MessageMap) -> None:
    """Refuse a q that the next update of some variable would still move far."""
    moves = phi.split(phi.counted * (phi(phi.moments) - phi.natural))
    for name, move in moves.items():
        variable = phi.network.hidden[name]
        fisher = base_of(variable.family).fisher_times(phi.q.natural[name], move)
        nats = np.einsum("ij,ij->i", move, fisher)
        worst = int(np.argmax(nats)) if len(nats) else 0
        if len(nats) and not np.sqrt(max(float(nats[worst]), 0.0)) <= FIXED:
            where = variable.plate.locate(worst)
            raise ModelError(
                f"q of '{name}' at {where} is not at a fixed point of this model: its next update "
                f"would move it by {np.sqrt(nats[worst]):.2g} standard deviations; fit on with "
                "init=fit, a smaller tol= and svmp.FullVB()"
            )


def entries_of(phi: MessageMap, name: str, whole: bool = True) -> Entries:
    """Return the entries of a variable.

    Parameters
    ----------
    phi, name
        The message map, and the variable.
    whole
        Whether all of its elements must depend on the data.
    """
    hidden = phi.network.hidden
    if name not in hidden:
        raise ModelError(f"there is no hidden variable {shown(name)}; there are {list(hidden)}")
    variable, natural = hidden[name], phi.q.natural[name]
    if name not in phi.variables:
        raise ModelError(
            f"'{name}' is a chain, whose q is joint along each sequence already; leave it out: it "
            "counts for the others"
        )
    if isinstance(variable.family, PartlyKnown):
        raise ModelError(
            f"'{name}' is observed in part, and linear response is for variables that are hidden "
            "as a whole; leave it out: it counts for the others"
        )
    reached = phi.network.rows(variable)
    if whole and len(reached) < variable.size:
        absent = int(np.setdiff1d(np.arange(variable.size), reached)[0])
        raise ModelError(
            f"'{name}' at {variable.plate.locate(absent)} has no observed descendants, so the fit "
            "knows nothing of it; leave the variable out, or declare it for observed elements only"
        )
    count = variable.size * int(np.prod(np.shape(variable.family.at(0).mean(natural[0]))))
    if count > MOST:
        raise ModelError(
            f"'{name}' has {count:,} numbers, and each takes a linear system of its own; ask for "
            f"variables of at most {MOST:,} numbers together"
        )
    cross, within, logs, size = [], [], [], variable.family.size
    for element in range(variable.size):
        family, start = variable.family.at(element), phi.places[name].start + element * size
        rows = family.cross_covariance(natural[element])
        cross += [(slice(start, start + size), row) for row in rows]
        within.append(family.cov(natural[element]).reshape(len(rows), len(rows)))
        if family.precision == "number":
            row = family.fisher_times(natural[element], np.array([0.0, 1.0]))
            logs.append(((slice(start, start + size), row), float(row[1])))
    mean = variable.family.mean(natural)
    shape = (*variable.plate.shape, *np.shape(mean)[1:])
    return Entries(name, shape, np.ravel(mean), cross, block_diagonal(within), logs)


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return a matrix with these blocks on its diagonal.

    >>> block_diagonal([np.eye(1), np.full((2, 2), 3.0)])
    array([[1., 0., 0.],
           [0., 3., 3.],
           [0., 3., 3.]])
    """
    size = sum(len(block) for block in blocks)
    matrix, start = np.zeros((size, size)), 0
    for block in blocks:
        stop = start + len(block)
        matrix[start:stop, start:stop] = block
        start = stop
    return matrix


def solve(
    fisher: Callable[[Array], Array], hessian: Callable[[Array], Array], right: Array, name: str
) -> Array:
    """Solve (I - H V) u = b by conjugate gradients in the inner product a . V b.

    Parameters
    ----------
    fisher, hessian
        Products with V and with H.
    right
        The right-hand side b, of the tilt of a variable.
    name
        The variable, for errors.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    direction, along = residual, fisher(residual)
    size = first = float(residual @ along)
    most = max(50, 2 * len(right)) if len(right) < MOST else 2 * MOST
    for _ in range(most):
        if size <= TOLERANCE**2 * first or first <= 0:
            return solution
        moved = direction - hessian(along)
        curvature = float(moved @ along)
        if not curvature > 0:
            raise ModelError(not_a_maximum(name))
        step = size / curvature
        solution = solution + step * direction
        residual = residual - step * moved
        weighted = fisher(residual)
        before, size = size, float(residual @ weighted)
        direction = residual + size / before * direction
        along = weighted + size / before * along
    if size <= 1e-6 * first:  # rounding errors stop it early: three digits are enough
        return solution
    raise ModelError(
        f"the linear response of '{name}' did not converge in {most:,} iterations: its posterior "
        "is nearly flat in some direction; centre and scale covariates, or give tighter priors"
    )


def not_a_maximum(name: str) -> str:
    """Return the error for a q at which the bound is not concave."""
    return (
        f"the linear response of '{name}' does not exist: q is not at a maximum of the bound, but "
        "at a saddle point or on a ridge; fit on with init=fit and a smaller tol=, or with "
        "restarts="
    )


def asked_names(names: Any, hidden: Mapping[str, Any]) -> list[str]:
    """Check names of hidden variables: one name, or several different ones."""
    listed = [names] if isinstance(names, str) else list(names) if _is_list(names) else None
    if not listed:
        raise ModelError(f"names must be names of hidden variables, not {shown(names)}")
    for name in listed:
        if not isinstance(name, str) or name not in hidden:
            raise ModelError(f"there is no hidden variable {shown(name)}; there are {list(hidden)}")
    if len(set(listed)) < len(listed):
        raise ModelError(f"names has {shown(listed)}, where a variable is named twice")
    return listed


def _is_list(names: Any) -> bool:
    return isinstance(names, list | tuple)
