"""What holds for every network: one function for each law.

A law takes a `Case`. It raises `Broken` where it does not hold, and `Skip` where it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

import svmp
from svmp.network.network import Network

from . import transform
from .case import Broken, Case, Refused, Skip
from .spec import CHAINS, Array, Dot, Mul, Spec, names, parts_of
from .truth import GAUSSIAN

FULL = "svmp.fit(model, svmp.FullVB())"
DEFAULT = "svmp.fit(model)"
TIGHT = "svmp.fit(model, tol=1e-10, max_sweeps=3000)"
TIGHT_FULL = "svmp.fit(model, svmp.FullVB(), tol=1e-10, max_sweeps=3000)"
JOINT = 'svmp.fit(model, joint="auto")'
PATHS = (
    DEFAULT, FULL, JOINT, 'svmp.fit(model, joint="auto", tol=1e-10)',
    "svmp.fit(model, svmp.Growing(first=0.4), max_sweeps=60)",
    "svmp.fit(model, seed=3)", "svmp.fit(model, svmp.FullVB(), seed=5)",
)  # fmt: skip
SAMPLED = (
    "svmp.fit(model, svmp.Batch(2), max_sweeps=8)",
    "svmp.fit(model, svmp.Children(1), max_sweeps=8)",
    "svmp.fit(model, svmp.Batch(3), steps=svmp.RobbinsMonro(), max_sweeps=8)",
)


# --- what kind of network ---------------------------------------------------------------------


def multiplied(spec: Spec) -> bool:
    """Whether variables that are not known are multiplied by each other in a mean."""
    unknown = {d.name for d in spec.hidden if d.kind in GAUSSIAN}

    def within(e) -> bool:
        if isinstance(e, Mul | Dot) and sum(bool(names(f) & unknown) for f in e.factors) > 1:
            return True
        return any(within(part) for part in parts_of(e))

    chains = [d for d in spec.declarations if d.kind in CHAINS]
    return any(within(e) for d in spec.declarations for _, e in d.parameters) or any(
        names(d[p]) for d in chains for p in ("A", "B") if d.has(p)
    )


def chooses(spec: Spec) -> bool:
    return any(d.kind in ("Categorical", "DiscreteMarkovChain") for d in spec.hidden)


def one_optimum(spec: Spec) -> bool:
    """Whether the bound is expected to have one optimum."""
    return not multiplied(spec) and not chooses(spec)


def linear_gaussian(spec: Spec) -> bool:
    """Whether all that is hidden is Normal, and the posterior too."""
    known = all(d.kind in GAUSSIAN for d in spec.hidden)
    logit = any(d.has("logit") for d in spec.declarations)
    return known and not logit and not multiplied(spec) and not chooses(spec)


# --- laws -------------------------------------------------------------------------------------


def bound_never_falls(case: Case) -> None:
    """No sweep lowers the bound, up to rounding."""
    code = case.pick(DEFAULT, FULL, JOINT, "svmp.fit(model, kernels=True)", *memoized(case.spec))
    fit = case.fit(code)
    bound = np.asarray(fit.trace["bound"], float)
    size = max(1.0, *(abs(t) for t in fit.bound_terms.values()), *np.abs(bound[np.isfinite(bound)]))
    if "Growing" in code or first_sample(fit):
        raise Skip
    falls = np.diff(bound[np.isfinite(bound)])
    if falls.size and falls.min() < -1e-9 * size * max(1, len(fit.posteriors)):
        raise Broken(f"{code}: the bound falls by {-falls.min():.3g} in {bound.tolist()[:40]}")


def first_sample(fit: svmp.Fit) -> bool:
    accesses = np.diff(np.r_[0, np.asarray(fit.trace["accesses"], float)])
    return bool(len(accesses) > 1 and accesses[0] < 0.5 * accesses[-1])


def memoized(spec: Spec) -> list[str]:
    found = [
        f"svmp.fit(model, svmp.Memoized(over={d!r}, parts=2))"
        for d in spec.sizes
        if not d.endswith("_")
    ]
    found += [
        f"svmp.fit(model, svmp.Memoized(over={d.column('sequence_dim') or repr('sequence')}))"
        for d in spec.declarations
        if d.column("sequence")
    ]
    return found


def bound_below_evidence(case: Case) -> None:
    """The bound of every path is at most the log evidence."""
    if case.truth is None:
        raise Skip
    code = case.pick(*PATHS, *SAMPLED, "svmp.fit(model, kernels=True)", *memoized(case.spec))
    fit = case.fit(code)
    size = sum(abs(t) for t in fit.bound_terms.values())
    over = fit.bound - case.truth.log_evidence
    if over > 1e-7 * (1 + abs(case.truth.log_evidence)) + 1e-11 * size:
        raise Broken(
            f"{code}: bound {fit.bound!r} above the log evidence {case.truth.log_evidence!r}"
        )


def means_are_exact(case: Case) -> None:
    """In a linear Gaussian network with known precisions the means are those of the posterior."""
    if case.truth is None or not linear_gaussian(case.spec):
        raise Skip
    code = case.pick(DEFAULT, TIGHT, TIGHT_FULL, JOINT)
    fit = case.fit(code)
    if fit.status != "converged":
        raise Skip
    within = 0.1 if code == DEFAULT else 0.01
    for name, mean in case.truth.mean.items():
        sd = np.sqrt(case.truth.var[name])
        off = np.abs(shaped(fit.mean(name), mean) - mean) / np.where(sd == 0, 1, sd)
        if off.max() > within:
            raise Broken(f"{code}: mean of {name} is off by {off.max():.3g} of its sd")


def joint_is_exact(case: Case) -> None:
    """One joint block over all that is hidden is the posterior, and its bound the evidence."""
    if case.truth is None or not linear_gaussian(case.spec):
        raise Skip
    if any(d.kind in CHAINS for d in case.spec.declarations):
        raise Skip
    fit = case.fit(JOINT)
    if len(fit.joint) != 1 or set(fit.joint[0].names) != set(case.truth.mean):
        raise Skip
    if abs(fit.bound - case.truth.log_evidence) > 1e-6 * (1 + abs(case.truth.log_evidence)):
        raise Broken(f"{JOINT}: bound {fit.bound}, evidence {case.truth.log_evidence}")
    compare_sds(case, fit, JOINT, 1e-4)


def compare_sds(
    case: Case, fit: svmp.Fit, code: str, within: float, kinds: tuple[str, ...] = ()
) -> None:
    """Compare the sds of all variables, or of those of some kinds, with the exact ones."""
    assert case.truth is not None
    for name, var in case.truth.var.items():
        if kinds and case.spec[name].kind not in kinds:
            continue
        sd = np.sqrt(var)
        off = np.abs(shaped(fit.std(name), sd) / np.where(sd == 0, 1, sd) - (sd > 0))
        if off.max() > within:
            raise Broken(f"{code}: sd of {name} is {fit.std(name)}, exact {sd}")


def alone_is_exact(case: Case) -> None:
    """With one hidden variable in one element, or one chain, q is the posterior."""
    if case.truth is None or len(case.truth.mean) != 1:
        raise Skip
    (name,) = case.truth.mean
    d = case.spec[name]
    vector = {"MvNormal": 1, "Dirichlet": 1}.get(d.kind, 0)
    if d.kind not in CHAINS and case.spec.size(d) > 1 and len(d.dims) != vector:
        raise Skip
    if d.column("sequence") or any(x.has("logit") for x in case.spec.declarations):
        raise Skip
    code = case.pick(DEFAULT, FULL, "svmp.fit(model, kernels=True)")
    fit = case.fit(code)
    if abs(fit.bound - case.truth.log_evidence) > 1e-6 * (1 + abs(case.truth.log_evidence)):
        raise Broken(f"{code}: bound {fit.bound}, evidence {case.truth.log_evidence}")
    off = np.abs(shaped(fit.mean(name), case.truth.mean[name]) - case.truth.mean[name])
    scale = np.sqrt(case.truth.var[name]) if name in case.truth.var else 1.0
    if (off / scale).max() > 1e-4:
        raise Broken(f"{code}: mean of {name} is {fit.mean(name)}, exact {case.truth.mean[name]}")
    if name in case.truth.var:
        compare_sds(case, fit, code, 1e-4)


def shaped(values: Array, like: Array) -> Array:
    """Return values of a random walk, whose vectors have length 1, in the shape of its rows."""
    values = np.asarray(values)
    return values.reshape(like.shape) if values.size == like.size else values


def joint_is_not_below_the_product(case: Case) -> None:
    """A joint q has at least the bound of a product."""
    joint = case.fit('svmp.fit(model, joint="auto", tol=1e-10)')
    product = case.fit(case.pick(TIGHT_FULL, TIGHT))
    if joint.status != "converged" or not one_optimum(case.spec):
        raise Skip
    if joint.bound < product.bound - tolerance(product, 1e-6):
        raise Broken(f"joint bound {joint.bound}, product {product.bound}")


def tolerance(fit: svmp.Fit, share: float) -> float:
    return share * (1 + sum(abs(t) for t in fit.bound_terms.values()))


def default_is_not_below_full(case: Case) -> None:
    """The default ends no lower than full VB."""
    if not one_optimum(case.spec):
        raise Skip
    code = case.pick(DEFAULT, TIGHT)
    default, full = case.fit(code), case.fit(TIGHT_FULL if code == TIGHT else FULL)
    if default.bound < full.bound - tolerance(full, 1e-3 if code == DEFAULT else 1e-6):
        raise Broken(f"{code}: bound {default.bound}, full VB {full.bound}")


def default_is_at_an_optimum(case: Case) -> None:
    """Full VB that starts at q of the default gains nothing."""
    default = case.fit("svmp.fit(model, tol=1e-9, max_sweeps=3000)")
    if default.status != "converged":
        raise Skip
    try:
        on = case.run(
            "svmp.fit(model, svmp.FullVB(), init=fit, tol=1e-9, max_sweeps=300)", fit=default
        )
    except Refused:
        raise Skip from None
    if on.bound > default.bound + tolerance(default, 1e-4):
        raise Broken(f"from q of the default, full VB gains {on.bound - default.bound:.3g}")
    if on.bound < default.bound - tolerance(default, 1e-6):
        raise Broken(f"from q of the default, full VB loses {default.bound - on.bound:.3g}")


def loops_and_plain_code_agree(case: Case) -> None:
    """Compiled loops compute what plain code does."""
    method = case.pick("", "svmp.FullVB(), ", *[f"svmp.{m}, " for m in memoized_methods(case.spec)])
    end = "tol=1e-9, max_sweeps=2000"
    plain = case.fit(f"svmp.fit(model, {method}kernels=False, {end})")
    loops = case.fit(f"svmp.fit(model, {method}kernels=True, {end})")
    same_fits(case, plain, loops, "loops")


def memoized_methods(spec: Spec) -> list[str]:
    return [code.split("svmp.", 2)[2][:-1] for code in memoized(spec)]


def same_fits(case: Case, one: svmp.Fit, other: svmp.Fit, what: str) -> None:
    """Compare two fits of one network; several optima are not compared."""
    if "converged" not in (one.status, other.status):
        raise Skip
    if not one_optimum(case.spec):
        raise Skip
    if abs(one.bound - other.bound) > tolerance(one, 1e-6):
        raise Broken(f"{what}: bounds {one.bound!r} and {other.bound!r}")
    for name in one.posteriors:
        sd = np.asarray(one.std(name))
        off = np.abs(np.asarray(one.mean(name)) - other.mean(name)) / np.where(sd == 0, 1, sd)
        if off.size and off.max() > 0.02:
            raise Broken(f"{what}: mean of {name} differs by {off.max():.3g} of its sd")
        ratio = np.asarray(other.std(name)) / np.where(sd == 0, 1, sd) - (sd > 0)
        if ratio.size and np.abs(ratio).max() > 0.01:
            raise Broken(f"{what}: sd of {name} {one.std(name)} and {other.std(name)}")


def threads_do_not_matter(case: Case) -> None:
    """The bits are the same with one thread and with two."""
    one = case.fit("svmp.fit(model, kernels=True, threads=1, max_sweeps=5)")
    two = case.fit("svmp.fit(model, kernels=True, threads=2, max_sweeps=5)")
    same_bits(one, two, "threads")


def same_bits(one: svmp.Fit, two: svmp.Fit, what: str) -> None:
    if one.bound != two.bound or one.status != two.status:
        raise Broken(f"{what}: bounds {one.bound!r} {one.status}, {two.bound!r} {two.status}")
    for name in one.posteriors:
        if not np.array_equal(one.mean(name), two.mean(name)):
            raise Broken(f"{what}: means of {name} differ")
        if not np.array_equal(one.var(name), two.var(name)):
            raise Broken(f"{what}: variances of {name} differ")


def twice_is_the_same(case: Case) -> None:
    """The same call gives the same bits."""
    code = case.pick(*PATHS, *SAMPLED)
    one, two = case.fit(code), case.run(code)
    same_bits(one, two, code)


def saved_is_loaded(case: Case) -> None:
    """A fit that is saved and loaded is the same fit."""
    fit = case.fit(case.pick(DEFAULT, JOINT, FULL))
    case.use_folder()
    path = 'str(folder / "fit.svmp")'
    case.run(f"fit.save({path})", fit=fit)
    loaded = case.run(f"svmp.load({path})")
    same_bits(fit, loaded, "saved and loaded")
    if str(fit) != str(loaded):
        raise Broken(f"saved and loaded: printed\n{fit}\nand\n{loaded}")


def resumed_is_the_same(case: Case) -> None:
    """A run that is interrupted and continued has the bits of one that was not."""
    case.use_folder()
    method = case.pick("", "svmp.FullVB(), ", "svmp.Batch(2), ")
    whole = case.fit(f"svmp.fit(model, {method}max_sweeps=6, tol=0)")
    first = case.run(
        f'svmp.fit(model, {method}max_sweeps=3, tol=0, every=1, checkpoint=str(folder / "run"))'
    )
    if first.status != "budget":
        raise Skip
    on = case.run(f'svmp.fit(model, {method}max_sweeps=6, resume=str(folder / "run"))')
    same_bits(whole, on, "resumed")


def views_agree(case: Case) -> None:
    """Means, sds, intervals and draws are those of one distribution."""
    fit = case.fit(case.pick(DEFAULT, FULL, JOINT))
    for name in fit.posteriors:
        q = fit[name]
        mean, sd = np.asarray(q.mean), np.asarray(q.std)
        if not np.allclose(sd**2, q.var, rtol=1e-9, atol=0):
            raise Broken(f"std of {name} is not the root of var")
        if not np.array_equal(fit.mean(name), mean) or not np.array_equal(fit.std(name), sd):
            raise Broken(f"fit.mean or fit.std of {name} is not that of fit[{name!r}]")
        draws = np.asarray(case.run(f"fit[{name!r}].draw(400, seed=1)", fit=fit), float)
        kind = case.spec[name].kind
        if kind in ("Categorical", "DiscreteMarkovChain"):
            continue
        error = np.abs(draws.mean(axis=0) - mean) / np.where(sd == 0, 1, sd)
        if error.size and error.max() > 6.5 / np.sqrt(400) and kind in GAUSSIAN:
            raise Broken(f"draws of {name} have mean {draws.mean(axis=0)}, q {mean}")
        ratio = draws.std(axis=0) / np.where(sd == 0, 1, sd) - (sd > 0)
        if ratio.size and np.abs(ratio).max() > 0.35 and kind in GAUSSIAN:
            raise Broken(f"draws of {name} have sd {draws.std(axis=0)}, q {sd}")
        frame = case.run(f"fit.to_frame({name!r})")
        if kind != "MvNormal" and not np.allclose(frame["mean"], mean.ravel(), rtol=1e-9):
            raise Broken(f"to_frame({name!r}) has means {list(frame['mean'])}, q {mean}")
    together = case.run(f"fit.draw({list(fit.posteriors)!r}, 3, seed=0)")
    for name, draws in together.items():
        if not np.isfinite(np.asarray(draws, float)).all():
            raise Broken(f"fit.draw: {name}: {draws}")


def what_is_printed_agrees(case: Case) -> None:
    """Every call shows the same sds, by default and of q, and says what they are."""
    fit = case.fit(case.pick(DEFAULT, FULL, JOINT))
    how = case.pick("", "corrected=False")
    printed = {row[0]: row for row in case.run(f"fit.summary({how})", fit=fit).rows}
    framed = case.run(f'fit.summary(kind="frame", {how})')
    arrays = case.run(f"fit.to_xarray({how})")
    draws = case.run(f"fit.draw({list(fit.posteriors)!r}, 400, seed=1, {how})")
    for name in fit.posteriors:
        kind = case.spec[name].kind
        if kind in ("Categorical", "DiscreteMarkovChain", "Wishart"):
            continue
        sd = np.asarray(case.run(f"fit.std({name!r}, {how})", fit=fit)).ravel()
        rows = [str(v).split("[")[0] == name for v in framed["variable"]]
        views = {
            "var": np.sqrt(case.run(f"fit.var({name!r}, {how})")),
            "posterior": case.run(f"fit.posterior({name!r}, {how}).std"),
            "to_frame": case.run(f"fit.to_frame({name!r}, {how})")["sd"],
            "summary as a frame": framed["sd"][rows],
            "to_xarray": arrays[name].sel(statistic="sd"),
        }
        if kind in (*GAUSSIAN, "Gamma") and kind not in CHAINS and not case.spec[name].missing:
            rule = case.run(f"fit.predict(model, {name!r}, {how})")
            known = rule._known.own(name)
            shape = (len(known), -1)
            predicted = np.where(known[:, None], rule.std.reshape(shape), sd.reshape(shape))
            views["predict"] = predicted
        if how or kind in ("Normal", "MvNormal", "Gamma"):
            views |= covariances_of(case, fit, name, how)
        for view, found in views.items():
            if not np.allclose(np.ravel(np.asarray(found)), sd, rtol=1e-6, atol=0):
                raise Broken(f"sd of {name}: fit.std has {sd}, {view} {np.asarray(found)}")
        if kind in GAUSSIAN:
            ratio = draws[name].std(axis=0).ravel() / np.where(sd == 0, 1, sd) - (sd > 0)
            if ratio.size and np.abs(ratio).max() > 0.35:
                raise Broken(f"draws of {name} have sd {draws[name].std(axis=0)}, fit.std {sd}")
        first = next(row for key, row in printed.items() if key.split("[")[0] == name)
        shown = re.fullmatch(r"-?[\d.,]+(e[-+]\d+)?", first[4])
        if shown and sd.size and not np.isclose(float(shown[0].replace(",", "")), sd[0], 1e-3, 0):
            raise Broken(f"sd of {name}: printed {shown[0]}, fit.std {sd}")


def covariances_of(case: Case, fit: svmp.Fit, name: str, how: str) -> dict[str, Array]:
    """Return the sd of a variable in `fit.covariance`, where that has what the fit shows."""
    if not how and "linear response" not in fit[name].covariances and not fit.joint:
        return {}
    found = case.run(f"fit.covariance({name!r}, {how})")
    return {"covariance": found.std(name)}


def shown_sds_are_sound(case: Case) -> None:
    """Linear response is shown only where `covariance` has it; it is exact for Normals."""
    fit = case.fit(case.pick(DEFAULT, TIGHT, FULL))
    for name in fit.posteriors:
        own, shown = fit.posteriors[name], fit[name]
        below = np.asarray(shown.std) < np.asarray(own.std) * (1 - 1e-3)
        if case.spec[name].kind in ("Normal", "MvNormal") and below.any():
            raise Broken(f"sd of {name} is {shown.std}, below that of q {own.std}")
        if shown.covariances == "q" and not np.array_equal(shown.natural, own.natural):
            raise Broken(f"{name} is said to be of q, and is not")
    if "linear response" not in fit.covariances:
        raise Skip
    network = Network(case.model())
    corrected = [n for n in fit.posteriors if fit[n].covariances == "linear response"]
    if reached := [n for n in corrected if not len(network.barren(n))]:
        case.run(f"fit.covariance({reached!r}, model=model)", fit=fit)
    if case.truth is not None and linear_gaussian(case.spec):
        compare_sds(case, fit, "fit.std", 1e-3)


def corrected_is_not_smaller(case: Case) -> None:
    """Linear response does not make a sd smaller than that of q, and is exact for Normals."""
    fit = case.fit(case.pick(TIGHT_FULL, TIGHT))
    if fit.status != "converged" or not one_optimum(case.spec):
        raise Skip
    better = case.run("fit.corrected(model)", fit=fit)
    for name in fit.posteriors:
        before = np.asarray(fit.std(name, corrected=False))
        after = np.asarray(better.std(name))
        if (after < before * (1 - 1e-3)).any() and case.spec[name].kind in GAUSSIAN:
            raise Broken(f"corrected sd of {name} is {after}, that of q {before}")
    if case.truth is not None and linear_gaussian(case.spec):
        # Chains keep their q.
        compare_sds(case, better, "fit.corrected(model)", 1e-3, ("Normal", "MvNormal"))


def covariance_is_exact(case: Case) -> None:
    """Linear response is the posterior's covariance where the posterior is Normal."""
    if case.truth is None or not linear_gaussian(case.spec):
        raise Skip
    fit = case.fit(TIGHT)
    wanted = [n for n in case.truth.mean if case.spec[n].kind in ("Normal", "MvNormal")]
    if fit.status != "converged" or not wanted:
        raise Skip
    found = case.run(f"fit.covariance({wanted!r}, model=model)", fit=fit)
    for name in wanted:
        sd = np.sqrt(case.truth.var[name])
        if not np.allclose(found.std(name), sd, rtol=1e-3, atol=0):
            raise Broken(f"covariance: sd of {name} is {found.std(name)}, exact {sd}")


def predictions_agree(case: Case) -> None:
    """Predictions are finite, have positive variances, and intervals around their medians."""
    fit = case.fit(case.pick(DEFAULT, FULL, JOINT))
    name = case.pick(*(d.name for d in case.spec.observed))
    rows = case.run(f"fit.predict(model, {name!r}, draws=100)", fit=fit)
    means = case.run(f"fit.predict(model, {name!r}, noise=False, draws=100)", fit=fit)
    mean, var = np.asarray(rows.mean, float), np.asarray(rows.var, float)
    if not (np.isfinite(mean).all() and (var >= 0).all()):
        raise Broken(f"prediction of {name}: mean {mean}, variance {var}")
    kind = transform.kind_of(case.spec[name])
    if kind in ("Categorical", "Multinomial", "Dirichlet"):
        return
    if (np.asarray(means.var) > var * (1 + 1e-6) + 1e-12).any() and kind in ("Normal", "MvNormal"):
        raise Broken(f"prediction of {name}: variance {var}, without noise {means.var}")
    interval = np.asarray(case.run("prediction.interval(0.9)", prediction=rows), float)
    if (interval[0] > interval[1]).any() or not np.isfinite(interval).all():
        raise Broken(f"prediction of {name}: interval {interval}")
    draws = np.asarray(case.run("prediction.draw(200, seed=2)"), float)
    sd = np.sqrt(var)
    if kind == "Normal" and case.spec[name].kind == "Normal":
        off = np.abs(draws.mean(axis=0) - mean) / np.where(sd == 0, 1, sd)
        if off.max() > 7 / np.sqrt(100):
            raise Broken(f"prediction of {name}: draws have mean {draws.mean(axis=0)}, not {mean}")


def compare_moved(case: Case, before: Spec, moved: transform.Moved, code: str) -> None:
    """Compare a fit of a network and of the changed one."""
    one, two = case.fit(code, before), case.fit(code, moved.spec)
    if one.status != "converged" or two.status != "converged":
        raise Skip
    if not one_optimum(before):
        raise Skip
    size = tolerance(one, 1e-6) + tolerance(two, 1e-9)
    if abs(two.bound - one.bound - moved.offset) > size:
        raise Broken(f"{code}: bound {two.bound!r}, expected {one.bound + moved.offset!r}")
    for name in one.posteriors:
        mean = moved.mean(before, name, np.asarray(one.mean(name)))
        sd = moved.std(before, name, np.asarray(one.std(name)))
        off = np.abs(np.asarray(two.mean(name)) - mean) / np.where(sd == 0, 1, sd)
        if off.size and off.max() > 0.02:
            raise Broken(f"{code}: mean of {name} {two.mean(name)}, expected {mean}, sd {sd}")
        if not np.allclose(two.std(name), sd, rtol=0.01, atol=0):
            raise Broken(f"{code}: sd of {name} {two.std(name)}, expected {sd}")


def tight(case: Case) -> str:
    return case.pick(TIGHT, TIGHT, TIGHT_FULL, 'svmp.fit(model, joint="auto", tol=1e-10)')


def units_do_not_matter(case: Case) -> None:
    """Other units change the answer accordingly, and nothing else."""
    digits = case.pick(0.5, 2.0, 4.0, 8.0)
    every = case.pick(True, False)
    factors = {}
    for d in case.spec.declarations:
        if every or d.observed is not None:
            sign = case.rng.choice([-1.0, 1.0])
            factors[d.name] = float(sign * np.round(10.0 ** case.rng.uniform(-digits, digits), 9))
    factors = {n: c for n, c in factors.items() if c}
    compare_moved(case, case.spec, transform.units(case.spec, factors), tight(case))


def everything_in_one_unit(case: Case) -> None:
    """All Normals times one number, which is what other units of the data are."""
    c = float(10.0 ** case.pick(-8, -3, -1, 1, 3, 8))
    real = {d.name: c for d in case.spec.declarations if transform.kind_of(d) in transform.REAL}
    if any(d.has("logit") for d in case.spec.declarations) or not real or multiplied(case.spec):
        raise Skip
    compare_moved(case, case.spec, transform.units(case.spec, real), tight(case))


def shifts_do_not_matter(case: Case) -> None:
    """Another zero changes the answer accordingly, and nothing else."""
    far = case.pick(1.0, 100.0, 1e4)
    by = {d.name: float(np.round(far * case.rng.normal(), 2)) for d in case.spec.declarations}
    some = case.pick("observed", "all")
    seen = {d.name for d in case.spec.observed}
    by = {n: a for n, a in by.items() if a and (some == "all" or n in seen)}
    compare_moved(case, case.spec, transform.shifted(case.spec, by), tight(case))


def orders_do_not_matter(case: Case) -> None:
    """Rows and levels in another order have the same answer, in that order."""
    dim = case.pick(*(d for d in case.spec.sizes if not d.endswith("_")))
    order = case.rng.permutation(case.spec.sizes[dim])
    compare_moved(case, case.spec, transform.permuted(case.spec, dim, order), tight(case))


def order_of_declarations_does_not_matter(case: Case) -> None:
    compare_moved(case, case.spec, transform.redeclared(case.spec, case.rng), tight(case))


def labels_do_not_matter(case: Case) -> None:
    """Elements with labels have the same answer as elements without."""
    moved = transform.relabelled(case.spec, case.rng)
    code = case.pick(DEFAULT, FULL, JOINT)
    same_bits(case.fit(code), case.fit(code, moved.spec), "labels")


def missing_rows_are_as_if_left_out(case: Case) -> None:
    """A row that is missing is as one that is not there."""
    for d in case.spec.observed:
        if d.missing is None or len(d.dims) != 1 or case.spec.is_parent(d.name):
            continue
        (row,) = d.dims
        if any(row in o.dims for o in case.spec.declarations if o.name != d.name):
            continue
        keep = np.flatnonzero(~case.spec.arrays[d.missing].values)
        fewer = transform.rows_taken(case.spec, row, keep)
        compare_moved(case, case.spec, transform.Moved(fewer), tight(case))
        return
    raise Skip


def twice_a_row_is_twice_the_weight(case: Case) -> None:
    """A row that is there twice counts as one with twice the weight."""
    d = case.pick(*case.spec.observed)
    found = transform.twice_and_double(case.spec, d)
    if found is None:
        raise Skip
    twice, moved = found
    compare_moved(case, twice, moved, tight(case))


def own_rows(spec: Spec) -> str:
    """Return the one dim of rows, along which a network can be divided."""
    rows = [d for d in spec.sizes if d.startswith("row")]
    if len(rows) != 1 or spec.sizes[rows[0]] < 2:
        raise Skip
    if any(d.kind in CHAINS for d in spec.declarations):
        raise Skip
    if any(d.observed and d.missing and spec.is_parent(d.name) for d in spec.declarations):
        raise Skip
    return rows[0]


def parts_are_the_whole(case: Case) -> None:
    """Rows in parts have the fit of one table."""
    row = own_rows(case.spec)
    rows = np.arange(case.spec.sizes[row])
    pieces = [rows[i::2] for i in range(2)]
    shared = [d.name for d in case.spec.hidden if row not in d.dims]
    if not shared:
        raise Skip
    order = np.concatenate(pieces)
    whole = case.fit("svmp.fit(model, svmp.FullVB(), tol=1e-10, max_sweeps=3000)")
    labelled = _labelled(case.spec, row)
    case.log.append(f"# in parts: rows {[p.tolist() for p in pieces]}")
    parts = case.run(
        "svmp.fit(svmp.Parts(declare, pieces, shared=shared), svmp.FullVB(), tol=1e-10, "
        "max_sweeps=3000)",
        declare=lambda rows: transform.rows_taken(labelled, row, rows).build(),
        pieces=pieces, shared=shared,
    )  # fmt: skip
    if not one_optimum(case.spec) or "budget" in (whole.status, parts.status):
        raise Skip
    moved = transform.Moved(case.spec, order={row: order})
    if abs(parts.bound - whole.bound) > tolerance(whole, 1e-6):
        raise Broken(f"in parts: bound {parts.bound!r}, one table {whole.bound!r}")
    for name in whole.posteriors:
        mean = moved.mean(case.spec, name, np.asarray(whole.posteriors[name].mean))
        sd = moved.std(case.spec, name, np.asarray(whole.posteriors[name].std))
        off = np.abs(np.asarray(parts.posteriors[name].mean) - mean) / np.where(sd == 0, 1, sd)
        if off.size and off.max() > 0.02:
            raise Broken(f"in parts: mean of {name} {parts.mean(name)}, one table {mean}")


def _labelled(spec: Spec, row: str) -> Spec:
    """Return the network with labels for its groups, as parts match them by these."""
    from dataclasses import replace

    labels = {
        d: spec.labels.get(d) or tuple(f"L{i:02d}" for i in range(n))
        for d, n in spec.sizes.items()
        if d.startswith("group")
    }
    labels |= {row: spec.labels[row]} if row in spec.labels else {}
    return replace(spec, labels={**spec.labels, **labels})


def updates_are_sound(case: Case) -> None:
    """Rows that arrive later teach; with one hidden variable, as all rows together do."""
    row = own_rows(case.spec)
    rows = np.arange(case.spec.sizes[row])
    cut = int(case.rng.integers(1, len(rows)))
    labelled = _labelled(case.spec, row)
    first, second = (transform.rows_taken(labelled, row, r) for r in (rows[:cut], rows[cut:]))
    start = case.fit(DEFAULT, first)
    fit = case.run("start.update(model)", second, start=start)
    for name in fit.posteriors:
        if not np.isfinite(fit.mean(name)).all() or (np.asarray(fit.var(name)) < 0).any():
            raise Broken(f"update: {name}: {fit.mean(name)}, {fit.var(name)}")
    truth = case.truth
    if truth is None or len(truth.mean) != 1:
        raise Skip
    (name,) = truth.mean
    d = case.spec[name]
    vector = {"MvNormal": 1, "Dirichlet": 1}.get(d.kind, 0)
    if row in d.dims or len(d.dims) != vector or name not in truth.var:
        raise Skip
    if any(x.has("logit") for x in case.spec.declarations):
        raise Skip
    if start.status == "converged" and not np.allclose(
        fit.mean(name), truth.mean[name], rtol=1e-4, atol=1e-4 * np.sqrt(truth.var[name]).max()
    ):
        raise Broken(f"updated mean of {name} {fit.mean(name)}, exact {truth.mean[name]}")
    if abs(start.bound + fit.bound - truth.log_evidence) > 1e-6 * (1 + abs(truth.log_evidence)):
        raise Broken(f"bounds {start.bound} + {fit.bound}, evidence {truth.log_evidence}")


def sampled_paths_are_sound(case: Case) -> None:
    """Paths that draw rows end with finite numbers."""
    dims = [d for d in case.spec.sizes if not d.endswith("_")]
    case.fit(case.pick(*SAMPLED, f"svmp.fit(model, svmp.Batch(1, over={case.pick(*dims)!r}), "
                       "max_sweeps=8)", *memoized(case.spec)))  # fmt: skip


def program_is_explained(case: Case) -> None:
    """`explain`, `print(model)` and the drawing of a network work for every network."""
    case.run("str(svmp.explain(model))")
    case.run("str(model)")
    case.run("model.draw().mermaid")
    case.run("str(svmp.prior_predictive(model, 3, seed=0))")


LAWS: tuple[Callable[[Case], None], ...] = (
    bound_never_falls, bound_below_evidence, means_are_exact, joint_is_exact, alone_is_exact,
    joint_is_not_below_the_product, default_is_not_below_full, default_is_at_an_optimum,
    loops_and_plain_code_agree, threads_do_not_matter, twice_is_the_same, saved_is_loaded,
    resumed_is_the_same, views_agree, what_is_printed_agrees, shown_sds_are_sound,
    corrected_is_not_smaller,
    covariance_is_exact, predictions_agree, units_do_not_matter, everything_in_one_unit,
    shifts_do_not_matter, orders_do_not_matter, order_of_declarations_does_not_matter,
    labels_do_not_matter, missing_rows_are_as_if_left_out, twice_a_row_is_twice_the_weight,
    parts_are_the_whole, updates_are_sound, sampled_paths_are_sound, program_is_explained,
)  # fmt: skip
