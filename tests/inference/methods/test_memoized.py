"""Memoized: parts, exact updates, fixed points of full VB, bounds that do not fall."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import digamma

import svmp
from svmp.inference.methods.division import MEANS, RESTARTS
from svmp.inference.running.run import Run
from svmp.network.network import Network
from tests.fuzz.mutants import assembled, dumped, opened, put_together, taken_apart
from tests.inference.checkpoints.test_checkpoint import same_bits
from tests.inference.tools import gallery
from tests.inference.updaters.test_groups import (
    NETWORKS,
    on_networks,
    one_topic_each,
    ratings,
    regression,
    topics,
)

GALLERY = {
    "02": "x_dim_0",
    "03 vector": "y_dim_0",
    "04 vectors": "user",
    "05": "row",
    "06 pictures": "row",
    "06 counts": "row",
    "07": "document",
    "09": "school",
    "11": "goals_dim_0",
}
"""Networks of the gallery and a dim of theirs whose elements are divided."""
READING_MEANS = ("topics", "topics by token", "one topic each")
"""Networks of test_groups.py whose groups read the means of global Dirichlets."""
WORDS, WEIGHTS = np.random.default_rng(2).integers(0, 5, 30), np.array([0.3, 0.7])
"""Words of the tokens, and the weights of two topics."""


def means(groups: int = 9) -> svmp.Model:
    """A Gamma with Poisson children in groups, and another that no group has to do with."""
    rng = np.random.default_rng(1)
    with svmp.Model(coords={"group": groups, "row": 40}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("y", mu=rate, dims=("group",), observed=rng.poisson(4, groups))
        svmp.Poisson("other", mu=rate, dims=("row",), observed=rng.poisson(4, 40))
    return model


@pytest.mark.parametrize("parts", [1, 2, 4, 9, 100])
def test_conjugate_posterior_is_exact(parts):
    fit = svmp.fit(means(), svmp.Memoized(over="group", parts=parts))
    rng = np.random.default_rng(1)
    counts = np.concatenate([rng.poisson(4, 9), rng.poisson(4, 40)])
    assert fit.status == "converged"
    assert fit["rate"].alpha == pytest.approx(2 + counts.sum(), rel=1e-12)
    assert fit["rate"].beta == pytest.approx(1 + 49, rel=1e-12)


def test_first_visit_is_a_step_of_stochastic_inference():
    """lambda = (1 - rho) lambda_0 + rho (eta + S_p / s), with the sums of the part in hand."""
    network = Network(means())
    method = svmp.Memoized(over="group", parts=3)
    part = method.division(network, seed=0).visited(1)
    fit = svmp.fit(
        network, method, init={"rate": {"alpha": 5.0, "beta": 3.0}}, seed=0, max_accesses=1
    )
    rng = np.random.default_rng(1)
    y, other = rng.poisson(4, 9), rng.poisson(4, 40)
    rho = 11**-0.7
    alpha = (1 - rho) * 5 + rho * (2 + 3 * y[part.drawn].sum() + other.sum())
    beta = (1 - rho) * 3 + rho * (1 + 9 + 40)
    assert fit["rate"].alpha == pytest.approx(alpha)
    assert fit["rate"].beta == pytest.approx(beta)


def two_topics(words: np.ndarray) -> svmp.Model:
    """Return a network of two topics with known weights."""
    with svmp.Model(coords={"topic": 2, "word": 5, "token": len(words)}) as model:
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=svmp.data(WEIGHTS, dims="topic"), dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=words)
    return model


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("in_parts", [False, True], ids=["in memory", "in parts"])
def test_first_visit_reads_the_means_of_dirichlets(kernels, parts, in_parts):
    """A token has topic k with a probability proportional to p_k E[phi_kw]."""
    words, a = WORDS, np.random.default_rng(3).uniform(0.1, 3, (2, 5))

    one = {"init": {"phi": {"a": a}}, "seed": 0, "max_accesses": 1, "kernels": kernels}
    if in_parts:
        tables = [{"word": some} for some in np.split(words, parts)]
        table, method = svmp.Parts(lambda part: two_topics(part["word"]), tables), svmp.Memoized()
        fit = svmp.fit(table, method, **one)
        number = int(method.visited_parts(np.full(parts, 30 // parts), 0, 1)[0])
        read = np.split(words, parts)[number]
    else:
        network, method = Network(two_topics(words)), svmp.Memoized(over="token", parts=parts)
        read = words[method.division(network, seed=0).visited(1).drawn]
        fit = svmp.fit(network, method, **one)
    mean = a / a.sum(axis=1, keepdims=True)
    q = WEIGHTS[:, None] * mean[:, read]
    sums = (q / q.sum(axis=0)) @ np.eye(5)[read]
    rho = 11**-0.7
    expected = (1 - rho) * a + rho * (0.1 + sums * len(words) / len(read))
    assert fit["phi"].a == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sweeps", [5, 7, 20, 22])
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("in_parts", [False, True], ids=["in memory", "in parts"])
def test_sweeps_with_steps_then_with_means_then_exact(kernels, sweeps, in_parts):
    """With one part: five steps at means, exact updates at means up to sweep 20, then full VB.

    Rows in parts, which cost a reading each sweep, are updated by full VB from the sixth sweep on.
    """
    words, a = WORDS, np.random.default_rng(3).uniform(0.1, 3, (2, 5))

    def fit(accesses):
        options = {"init": {"phi": {"a": a}}, "tol": 0, "kernels": kernels}
        if in_parts:
            table = svmp.Parts(lambda part: two_topics(part["word"]), [{"word": words}])
            return svmp.fit(table, svmp.Memoized(), max_accesses=accesses, **options)
        method = svmp.Memoized(over="token", parts=1)
        return svmp.fit(two_topics(words), method, max_accesses=accesses, **options)

    one_visit = int(fit(1).trace["accesses"][-1])
    found = fit((sweeps - 1) * one_visit + 1)
    assert found.iterations >= sweeps if in_parts else found.iterations == sweeps
    expected, means = a, 5 if in_parts else 20
    for sweep in range(1, found.iterations + 1):
        total = expected.sum(axis=1, keepdims=True)
        log = np.log(expected / total) if sweep <= means else digamma(expected) - digamma(total)
        q = WEIGHTS[:, None] * np.exp(log[:, words])
        rho = (sweep + 10) ** -0.7 if sweep <= 5 else 1
        target = 0.1 + (q / q.sum(axis=0)) @ np.eye(5)[words]
        expected = (1 - rho) * expected + rho * target
    assert found["phi"].a == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("parts", [1, 3, 7, 99])
def test_division_has_every_group_once_in_parts_of_about_the_same_size(parts):
    network = Network(ratings())
    division = svmp.Memoized(over="user", parts=parts).division(network, seed=3)
    groups = [part.drawn for part in division.parts]
    sizes = [len(some) for some in groups]
    assert len(groups) == min(parts, 7)
    assert sorted(np.concatenate(groups)) == list(range(7))
    assert max(sizes) - min(sizes) <= 1


def test_every_sweep_visits_each_part_once_in_an_order_of_its_own():
    network, method = Network(topics(documents=40)), svmp.Memoized(over="doc", parts=10)
    division = method.division(network, seed=0)
    visits = [division.visited(t).number for t in range(1, 31)]
    sweeps = [visits[i : i + 10] for i in (0, 10, 20)]
    assert all(sorted(sweep) == list(range(10)) for sweep in sweeps)
    assert sweeps[0] != sweeps[1] != sweeps[2]
    assert visits == [method.draw(network, 0, t).number for t in range(1, 31)]
    other = method.division(network, seed=1)
    assert not all(
        np.array_equal(a.drawn, b.drawn) for a, b in zip(division.parts, other.parts, strict=True)
    )


@pytest.mark.parametrize("name", GALLERY)
def test_end_is_a_fixed_point_of_full_vb_on_the_gallery(name):
    """Full VB does not move away from it, and where there is one optimum it ends at the same."""
    model = gallery()[name]
    fit = svmp.fit(model, svmp.Memoized(over=GALLERY[name], parts=4), tol=1e-8)
    assert fit.status == "converged"
    more = svmp.fit(model, svmp.FullVB(), init=fit, tol=1e-8)
    assert more.status == "converged"
    assert more.bound == pytest.approx(fit.bound, rel=1e-6)
    if name != "07":
        full = svmp.fit(model, svmp.FullVB(), tol=1e-8)
        assert fit.bound == pytest.approx(full.bound, rel=1e-6)


@on_networks
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
def test_bound_does_not_fall_after_the_first_sweeps(name, kernels):
    model, over, _ = NETWORKS[name]
    for seed in range(3):
        method = svmp.Memoized(over=over, parts=3)
        fit = svmp.fit(model(), method, kernels=kernels, seed=seed, max_sweeps=300)
        bound = fit.trace["bound"]
        early = MEANS if name in READING_MEANS else RESTARTS
        assert fit.trace["iteration"][0] == early * 3  # earlier bounds are not computed
        assert np.diff(bound).min(initial=0) >= -1e-9 * abs(fit.bound)
        assert fit.bound >= bound[0] - 1e-9 * abs(fit.bound)


def test_bound_of_each_visit_rises_where_global_variables_are_one_block():
    """Between two visits, with all variables stored, nothing but coordinate ascent happens."""
    method = svmp.Memoized(over="doc", parts=6)
    start = svmp.fit(topics(documents=30), method, kernels=False, max_sweeps=50).posteriors
    for model in (topics(documents=30), one_topic_each()):
        init = start if model.coords == {} else None
        fit = svmp.fit(model, method, kernels=False, init=init, bound_every=1, max_sweeps=300)
        late = fit.trace["iteration"] >= MEANS * 6
        assert np.diff(fit.trace["bound"][late]).min() >= -1e-10 * abs(fit.bound)


def test_compiled_loops_agree_with_plain_code():
    """From the same topics near an optimum, both end at it."""
    method = svmp.Memoized(over="doc", parts=4)
    model = topics(documents=40, words=30, length=20)
    phi = svmp.fit(model, method).posteriors["phi"]
    compiled, plain = (
        svmp.fit(model, method, init={"phi": phi}, kernels=kernels) for kernels in (True, False)
    )
    assert compiled.bound == pytest.approx(plain.bound, rel=1e-4)


@pytest.mark.parametrize("name", ["topics", "regression", "ratings by user"])
def test_threads_do_not_change_the_bits(name):
    model, over, _ = NETWORKS[name]
    method = svmp.Memoized(over=over, parts=3)
    one, two = (svmp.fit(model(), method, max_sweeps=20, threads=n) for n in (1, 2))
    assert same_bits(one, two)


def test_seeds_give_the_same_bits_and_different_divisions():
    method = svmp.Memoized(over="doc", parts=3)
    fits = [svmp.fit(topics(), method, seed=seed, max_sweeps=9) for seed in (0, 0, 1)]
    assert same_bits(fits[0], fits[1])
    assert not same_bits(fits[0], fits[2])


@pytest.mark.parametrize("name", ["topics", "regression", "ratings and prices"])
@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 16, 20])
def test_resumed_run_gives_the_same_bits(name, iterations, tmp_path):
    model, over, _ = NETWORKS[name]
    method, path = svmp.Memoized(over=over, parts=3), tmp_path / "run"
    whole = svmp.fit(model(), method, max_sweeps=30, tol=0)
    seen = []

    def stop(row):
        seen.append(row)
        if row["iteration"] == iterations:
            raise KeyError

    with pytest.raises(KeyError):
        svmp.fit(model(), method, tol=0, bound_every=1, watch=stop, checkpoint=path, every=1)
    if iterations == 1:
        assert not path.exists()
        return
    resumed = svmp.fit(model(), resume=path, max_sweeps=30)
    assert resumed.trace["iteration"][-1] == whole.trace["iteration"][-1]
    assert same_bits(resumed, whole)


def test_sweep_that_lowers_the_bound_is_undone(monkeypatch):
    """A sweep that is declared worse is not kept, and the next updates use no kept sums."""
    asked, exact, keep = [], [], Run.keep_sweep

    def worse(bound, before):
        asked.append(bound)
        return len(asked) in (3, 6)

    def record(self):
        exact.append(self.state.memo.exact)
        return keep(self)

    monkeypatch.setattr(Run, "is_below", staticmethod(worse))
    monkeypatch.setattr(Run, "keep_sweep", record)
    fit = svmp.fit(regression(), svmp.Memoized(over="group", parts=3), tol=1e-10)
    full = svmp.fit(regression(), svmp.FullVB(), tol=1e-10)
    assert fit.status == "converged"
    assert fit.trace["rollbacks"][-1] == 2
    assert fit.bound == pytest.approx(full.bound, rel=1e-8)
    assert np.diff(fit.trace["bound"][RESTARTS:]).min() >= -1e-9 * abs(fit.bound)
    after = RESTARTS + 2  # sweeps before the first that is undone
    assert exact[0] == 1
    assert exact[after] == 1
    assert max(exact) == 2


def test_run_that_ends_within_a_sweep_is_no_worse_than_the_sweep_before():
    method = svmp.Memoized(over="group", parts=5)
    for accesses in range(2000, 6000, 250):
        fit = svmp.fit(regression(), method, max_accesses=accesses, tol=0)
        assert fit.status == "budget"
        assert fit.bound >= fit.trace["bound"][RESTARTS:].max(initial=-np.inf) - 1e-9


def test_invalid_arguments_are_refused():
    with pytest.raises(svmp.ModelError, match="parts must be a whole number of at least 1, not 0"):
        svmp.Memoized(over="doc", parts=0)
    with pytest.raises(svmp.ModelError, match="over"):
        svmp.Memoized(over=3)
    with pytest.raises(svmp.ModelError, match="no such dimension"):
        svmp.fit(topics(), svmp.Memoized(over="page"))
    with pytest.raises(svmp.ModelError, match="belongs to two elements"):
        svmp.fit(gallery()["11"], svmp.Memoized(over="team"))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run"
    svmp.fit(
        topics(),
        svmp.Memoized(over="doc", parts=3),
        max_sweeps=300,
        tol=0,
        checkpoint=path,
        every=1,
    )
    path.with_name("run.before").unlink()
    return path


DAMAGES = {
    "a part is missing": lambda arrays: arrays.pop("sums1/phi"),
    "the total is missing": lambda arrays: arrays.pop("sums/phi"),
    "there is a part too many": lambda arrays: arrays.update({"sums3/phi": arrays["sums1/phi"]}),
    "sums of another variable": lambda arrays: arrays.update({"sums/theta": arrays["sums/phi"]}),
    "another shape": lambda arrays: arrays.update({"sums1/phi": arrays["sums1/phi"][:1]}),
    "not a number": lambda arrays: arrays.update({"sums/phi": arrays["sums/phi"] * np.nan}),
    "single precision": lambda arrays: arrays.update(
        {"sums0/phi": arrays["sums0/phi"].astype(np.float32)}
    ),
    "no sound q": lambda arrays: arrays.pop("sound/phi"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_sums_are_refused(damage, path):
    about, arrays = taken_apart(path.read_bytes())
    DAMAGES[damage](arrays)
    path.write_bytes(put_together(about, arrays))
    with pytest.raises(svmp.FileError, match="damaged") as caught:
        svmp.fit(topics(), resume=path)
    assert str(path) in str(caught.value)


def test_bound_of_a_sweep_without_its_q_is_refused(tmp_path):
    path, method = tmp_path / "run", svmp.Memoized(over="doc", parts=3)
    svmp.fit(topics(), method, max_sweeps=1, checkpoint=path, every=1)
    header, body = opened(path.read_bytes())
    about = json.loads(header["__metadata__"]["svmp-run"])
    about["counters"]["sweep_bound"] = np.inf
    header["__metadata__"]["svmp-run"] = json.dumps(about)
    path.write_bytes(assembled(header, body))
    path.with_name("run.before").unlink(missing_ok=True)
    with pytest.raises(svmp.FileError, match="but not its q"):
        svmp.fit(topics(), resume=path, max_sweeps=50)


def test_checkpoint_of_the_first_format_is_read(tmp_path):
    path = tmp_path / "run"
    whole = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=6, tol=0)
    svmp.fit(ratings(), svmp.FullVB(), max_sweeps=3, tol=0, checkpoint=path, every=1)
    header, body = opened(path.read_bytes())
    about = json.loads(header["__metadata__"]["svmp-run"])
    about["format"] = 1
    del about["counters"]["exact"], about["counters"]["sweep_bound"]
    header["__metadata__"]["svmp-run"] = dumped(np.random.default_rng(0), about)
    path.write_bytes(assembled(header, body))
    assert same_bits(svmp.fit(ratings(), resume=path, max_sweeps=6), whole)
