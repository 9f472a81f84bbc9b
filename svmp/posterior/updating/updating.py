"""Streaming: update a fit with new rows; what was learned is their prior.

Let q_old be the earlier q, on the new network: elements that were known have their earlier natural
parameter lambda, new ones their prior. Earlier rows, which are not read again, have taught

    S_i = lambda_i - eta_i(q_old) - sum over hidden children c of eta_(c -> i)(q_old)

about each known element, where c are the known elements of the new network that S tells something
about: they send their messages anew. The new network is then fitted with eta_i + (1 - forget) S_i
for eta_i. With one hidden variable this is Bayes' rule, and equals a fit to all rows.

Where parents are hidden, eta_i will move, and S_i is reduced to what a sum of messages can be, so
that the sum stays proper. Where they are not, eta_i + S_i is lambda_i, whatever lambda_i is.

Sequences of chains that were there go on from the q of their last rows:
network/chains/continuing.py.

Elements that the new model does not declare keep their q, and what they have told their parents
stays in S.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from svmp.errors import ModelError
from svmp.families import Dirichlet
from svmp.families.family import Array
from svmp.inference.execute import Outcome, execute
from svmp.inference.running.problem import OneTable
from svmp.network.beliefs import Beliefs
from svmp.network.chains.continuing import Continued, SequenceEnds
from svmp.network.declaration import Declaration
from svmp.network.dims.coords import Extent
from svmp.network.dims.matching import (
    DimMatch,
    VariableMatch,
    match_dims,
    match_variable,
)
from svmp.network.forms import check_form, parents_of
from svmp.network.keywords import check_keywords
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.network.validation import shown
from svmp.network.variable import Variable
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.drift import RATES, Drift
from svmp.posterior.record.run_record import RunRecord, coords_of
from svmp.posterior.updating.drifting import Paths
from svmp.posterior.updating.forgetting import Share, bound_of_shares, shares_of

ROUNDING = 1e-12
"""Share of a natural parameter that is taken for rounding."""
ROUNDS = 50
"""Most rounds of fitting q and learning how much to forget."""
CLOSE = 1e-4
"""Change of what is forgotten at which the rounds end."""

Forget = float | Literal["learn"]


@dataclass(frozen=True, eq=False)
class Update:
    """An earlier fit and the network of new rows, matched.

    Attributes
    ----------
    network
        The network, with what earlier rows taught as `learned`.
    dims, variables
        How its dims and hidden variables match the earlier ones.
    start
        Starting q of the variables that have known elements.
    taught
        S of each variable.
    others
        q before the new rows, with natural parameters from which S is left out.
    """

    network: Network
    dims: Mapping[str, DimMatch]
    variables: Mapping[str, VariableMatch]
    start: Mapping[str, Posterior]
    taught: Mapping[str, Array]
    others: Beliefs

    def keep(self, learned: Mapping[str, Array]) -> None:
        """Let the network keep some of what was taught, and find its bound without new rows."""
        network, q = self.network, self.others.copy()
        network.learned = dict(learned)
        network.baseline = {}
        for name in self.start:
            q.natural[name] = q.natural[name] + network.learned.get(name, 0.0)
            q.moments[name] = network.hidden[name].family.moments(q.natural[name])
        network.baseline = {name: network.bound_term(q, name) for name in self.start}


@dataclass(frozen=True, eq=False)
class Updated:
    """The outcome of an update.

    Attributes
    ----------
    outcome
        The run on the new network.
    posteriors
        Of the variables that do not belong to new rows, the posteriors of all elements.
    coords
        Sizes or labels of all dims.
    ends
        By chain, q of the last row of each sequence, earlier or new.
    forgetting, changed
        The share that was forgotten by variable, and the probability that it has changed at once,
        if they were learned.
    drifts
        By variable, what is carried on about the rate of forgetting.
    """

    outcome: Outcome
    posteriors: dict[str, Posterior]
    coords: dict[str, Extent]
    ends: dict[str, SequenceEnds]
    forgetting: dict[str, float] = field(default_factory=dict)
    changed: dict[str, float] = field(default_factory=dict)
    drifts: dict[str, Drift] = field(default_factory=dict)


def update(
    earlier: RunRecord,
    model: Model,
    forget: Forget,
    new: Collection[str],
    options: Mapping[str, Any],
) -> Updated:
    """Fit the network of new rows with an earlier fit as its prior; see `Fit.update`."""
    check_arguments(model, forget, new, options)
    prepared = prepare(earlier, model, new, options.get("seed", 0))
    given = {name: value for name, value in options.items() if name != "init"}
    start = {**prepared.start, **(options.get("init") or {})}

    def run(init: Mapping[str, Any]) -> Outcome:
        return execute(OneTable(prepared.network), init=init, **given)

    if not isinstance(forget, str):
        kept = 1 - float(forget)
        prepared.keep({name: kept * taught for name, taught in prepared.taught.items()})
        return collect(earlier, prepared, run(start))
    matches, drifts = prepared.variables, earlier.drifts
    paths = {
        name: Paths.of(taught, drifts.get(name), matches[name])
        for name, taught in prepared.taught.items()
    }
    found = learn_shares(prepared, paths, start, run)
    return replace(
        collect(earlier, prepared, found.outcome),
        forgetting={name: 1 - found.kept(name) for name in paths},
        changed={name: share.changed for name, share in found.shares.items()},
        drifts={
            name: path.after(
                found.used[name],
                found.weights[name],
                found.k[name],
                drifts.get(name),
                matches[name],
            )
            for name, path in paths.items()
        },
    )


def check_arguments(model: Any, forget: Any, new: Any, options: Mapping[str, Any]) -> None:
    """Refuse arguments that `update` does not know."""
    if not isinstance(model, Model):
        raise ModelError(f"update needs a svmp.Model of the new rows, not {shown(model)}")
    number = not isinstance(forget, bool) and isinstance(forget, Real) and 0 <= float(forget) < 1
    if not number and not (isinstance(forget, str) and forget == "learn"):
        raise ModelError(
            "forget must be a number of at least 0 and less than 1, or 'learn', not "
            + shown(forget)
        )
    if isinstance(new, str) or not isinstance(new, Collection):
        raise ModelError(f"new must be a list of dims, not {shown(new)}")
    init = options.get("init")
    if not isinstance(init, Mapping | None):
        raise ModelError(f"init must be a dict by variable, not {shown(init)}")
    known = [n for n in inspect.signature(execute).parameters if n not in ("problem", "observers")]
    check_keywords("update", options, ["forget", "new", *known])
    for name in options:
        if not number and name in ("checkpoint", "resume") and options[name] is not None:
            raise ModelError(f"{name} is not possible with forget='learn', which runs several fits")


def prepare(
    earlier: RunRecord, model: Declaration, new: Collection[str] = (), seed: Any = 0
) -> Update:
    """Match an earlier fit with a new model, and compute what its rows taught."""
    network = Network(model)
    network.check()
    check_same(earlier, network)
    for name, variable in network.observed.items():
        check_form(variable, earlier.forms.get(name))
    coords = earlier.coords or coords_of(earlier)
    dims = match_dims(network, coords, new)
    matches = {
        name: match_variable(variable, dims, earlier.posteriors[name].plate)
        for name, variable in network.hidden.items()
    }
    for name, match in matches.items():
        if isinstance(network.hidden[name].family, PartlyKnown) and (match.known >= 0).any():
            raise ModelError(
                f"'{name}' is observed in part, so that its elements cannot be those of an earlier "
                "fit; they must belong to new rows, or be named in new="
            )
        if name in network.chains and (match.known >= 0).any():
            (rows,) = network.hidden[name].plate.labels
            raise ModelError(
                f"'{name}' has rows of the earlier fit; an update takes the rows that follow: give "
                f"them new labels, or say new=['{rows}'] if all of them are new"
            )
    going_on = continued(earlier, network, new)
    labelled = [
        dim
        for variable in network.hidden.values()
        for dim in variable.plate.labels
        if dim in model.labels and dim in coords and not isinstance(coords[dim], int)
    ]  # whose elements may all be new
    known = any((match.known >= 0).any() for match in matches.values())
    if not (going_on or known or set(labelled) - set(new)):
        name = next(iter(matches))
        raise ModelError(
            "nothing in the new model was there earlier: each of its hidden elements belongs to a "
            f"new row or has a new label, as those of '{name}'; give labels in coords, to both "
            "models, along the dims whose elements stay the same"
        )
    q = earlier_q(earlier, network, matches)
    taught, others = taught_by_earlier_rows(network, q, matches)
    network = Network(model, taught, continued=going_on)
    rng = np.random.default_rng([seed if isinstance(seed, int) else 0, 17])
    start = {}
    for name, match in matches.items():
        if (match.known >= 0).any():
            variable, fresh = network.hidden[name], match.known < 0
            natural = q.natural[name].copy()
            if fresh.any():
                elements = np.flatnonzero(fresh)
                natural[fresh] = variable.family.at(elements).start(natural[fresh], rng)
            start[name] = posterior(variable, variable.plate.shape, natural)
    return Update(network, dims, matches, start, taught, others)


def continued(earlier: RunRecord, network: Network, new: Collection[str]) -> dict[str, Continued]:
    """Return by chain the sequences that go on from the earlier fit."""
    found: dict[str, Continued] = {}
    for name, chain in network.chains.items():
        dim = chain.sequences.dim
        if name not in earlier.ends or dim in new:
            continue
        on = earlier.ends[name].continued(chain.sequences, network.model.labels.get(dim))
        if on is not None:
            chain.check_continued(on)
            found[name] = on
    return found


def ends_of(network: Network, q: Beliefs) -> dict[str, SequenceEnds]:
    """Return by chain q of the last row of each sequence."""
    return {
        name: SequenceEnds.of(
            chain.sequences, network.model.labels.get(chain.sequences.dim), q.natural[name]
        )
        for name, chain in network.chains.items()
        if name in q.joint
    }


def check_same(earlier: RunRecord, network: Network) -> None:
    """Refuse a model whose hidden variables differ from those of the earlier fit."""
    names = list(network.hidden)
    for name in {**dict.fromkeys(earlier.posteriors), **network.hidden}:
        if name not in network.hidden:
            raise ModelError(f"the fit has '{name}', but the new model hides {names} only")
        if name not in earlier.posteriors:
            raise ModelError(
                f"the new model hides '{name}', of which the fit has no posterior; it has "
                f"{list(earlier.posteriors)}"
            )
        variable, q = network.hidden[name], earlier.posteriors[name]
        then, now = (type(base_of(f)).__name__ for f in (q.family, variable.family))
        if then != now:
            raise ModelError(f"'{name}' was a {then} and is a {now} in the new model")
        if q.dims != variable.dims:
            raise ModelError(f"'{name}' had dims {q.dims} and has {variable.dims} in the new model")
        parents = parents_of(variable)
        if name in earlier.parents and sorted(earlier.parents[name]) != sorted(parents):
            raise ModelError(
                f"'{name}' depended on {earlier.parents[name]} and depends on {parents} in the new "
                "model"
            )


def earlier_q(
    earlier: RunRecord, network: Network, matches: Mapping[str, VariableMatch]
) -> Beliefs:
    """Return the earlier q on a new network; new elements have their prior.

    Variables of new rows that no hidden variable depends on are left out.
    """
    q = Beliefs()
    for name, parent in network.observed_parents.items():
        q.moments[name] = parent.conditional.child(q, parent.rows)
    for name, variable in network.hidden.items():
        match = matches[name]
        known = match.known >= 0
        hidden = any(edge.conditional.variable.hidden for edge in network.edges[name])
        if not known.any() and not hidden:
            continue
        natural = np.array(network.priors(q, name))
        if known.any():
            then = np.asarray(earlier.posteriors[name].natural)[match.known[known]]
            if match.categories is None:
                if then.shape[1] != natural.shape[1]:
                    raise ModelError(f"'{name}' has another number of categories than earlier")
                natural[known] = then
            else:
                now = match.categories.known >= 0
                natural[np.ix_(known, now)] = then[:, match.categories.known[now]]
        q.natural[name], q.moments[name] = natural, variable.family.moments(natural)
    return q


def taught_by_earlier_rows(
    network: Network, q: Beliefs, matches: Mapping[str, VariableMatch]
) -> tuple[dict[str, Array], Beliefs]:
    """Return S of each variable that earlier rows taught something about, and q without it."""
    found: dict[str, Array] = {}
    others = q.copy()
    for name in reversed(network.hidden):
        known = matches[name].known >= 0
        if not known.any():
            continue
        variable, eta = network.hidden[name], network.priors(q, name)
        taught = q.natural[name] - eta
        size = np.maximum(np.abs(q.natural[name]), np.abs(eta))
        for edge in network.edges[name]:
            child = edge.conditional.variable.name
            if child in found:
                told = np.flatnonzero((found[child] != 0).any(axis=1))
                elements, rows = edge.pairs_in(told)
                distinct, owner = np.unique(elements, return_inverse=True)
                message = edge.message(q, distinct, owner, rows)
                taught[distinct] -= message
                size[distinct] = np.maximum(size[distinct], np.abs(message))
        taught[~known | (np.abs(taught) <= ROUNDING * size).all(axis=1)] = 0
        others.natural[name] = q.natural[name] - taught
        every = np.arange(variable.size)
        if parents_of(variable):
            taught = variable.family.as_evidence(taught)
        taught[~variable.family.at(every).in_domain(eta + taught)] = 0
        if taught.any():
            found[name] = taught
    return found, others


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned about forgetting, by variable.

    Attributes
    ----------
    bound, outcome
        The bound, and the run.
    shares
        q(k).
    k, used
        The share and the weights of rates that the run had in its prior.
    weights
        The weights of rates given the new rows.
    """

    bound: float
    outcome: Outcome
    shares: Mapping[str, Share]
    k: Mapping[str, float]
    used: Mapping[str, Array]
    weights: Mapping[str, Array]

    def kept(self, name: str) -> float:
        """Return the share of what was learned that is kept, by a jump and by the rates."""
        return self.shares[name].mean * float(self.weights[name] @ RATES)


def learn_shares(
    prepared: Update,
    paths: Mapping[str, Paths],
    start: Mapping[str, Any],
    run: Callable[[Mapping[str, Any]], Outcome],
) -> Learned:
    """Fit q and what is kept in turn, from all and from nothing; return the better of the two."""
    best: Learned | None = None
    network = prepared.network
    for first in (1.0, 0.0):
        kept, init = dict.fromkeys(paths, first), dict(start)
        weights = {name: path.weights for name, path in paths.items()}
        for _ in range(ROUNDS):
            k, used = kept, weights
            taught = {name: path.mean(used[name]) for name, path in paths.items()}
            prepared.keep({name: k[name] * evidence for name, evidence in taught.items()})
            outcome = run(init)
            q = outcome.run.state.q
            shares = shares_of(network, q, taught)
            kept = {name: share.mean for name, share in shares.items()}
            weights = {
                name: path.posterior(network, q, name, kept[name], network.learned[name])
                for name, path in paths.items()
            }
            stored = {name: network.hidden[name] for name in q.natural}
            init = {n: posterior(v, v.plate.shape, q.natural[n]) for n, v in stored.items()}
            near = all(
                abs(kept[name] - k[name]) + float(np.abs(weights[name] - used[name]) @ (1 - RATES))
                <= CLOSE
                for name in kept
            )
            if near or outcome.status == "interrupted":
                break
        bound = outcome.run.state.measured.bound + sum(network.baseline.values())
        bound += bound_of_shares(shares)
        bound -= sum(path.price(used[name]) for name, path in paths.items())
        if best is None or bound > best.bound:
            best = Learned(bound, outcome, shares, k, used, weights)
        if outcome.status == "interrupted":
            break
    assert best is not None
    return best


def collect(earlier: RunRecord, prepared: Update, outcome: Outcome) -> Updated:
    """Return the posteriors of all elements, those of the new model and earlier ones."""
    q, network = outcome.run.state.q, prepared.network
    posteriors = {}
    for name, match in prepared.variables.items():
        if not len(match.earlier):
            continue
        variable = network.hidden[name]
        then, now = earlier.posteriors[name].natural, q.natural_at(name, np.arange(variable.size))
        natural = np.zeros((int(np.prod(match.plate)), now.shape[1]))
        if match.categories is None:
            natural[match.earlier] = then
            natural[match.place] = now
        else:
            natural = with_all_categories(match, match.categories, then, now)
        posteriors[name] = posterior(variable, match.plate, natural)
    ends = dict(earlier.ends)
    for name, last in ends_of(network, q).items():
        ends[name] = ends[name].then(last) if name in ends else last
    coords = {dim: match.extent for dim, match in prepared.dims.items()}
    return Updated(outcome, posteriors, coords, ends)


def with_all_categories(
    match: VariableMatch, categories: DimMatch, then: Array, now: Array
) -> Array:
    """Return the natural parameters of Dirichlets along all categories."""
    natural = np.empty((int(np.prod(match.plate)), categories.size))
    natural[np.ix_(match.earlier, np.arange(then.shape[1]))] = then
    natural[np.ix_(match.place, categories.place)] = now
    return natural


def posterior(variable: Variable, plate: tuple[int, ...], natural: Array) -> Posterior:
    """Return the posterior of a variable, with a plate that may have grown."""
    family = variable.family
    if family.simplex:
        family = Dirichlet.sized(natural.shape[1])
    return Posterior(variable.name, variable.dims, plate, family, natural)
