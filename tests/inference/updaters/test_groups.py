"""Batches of groups: documents, users or schools are drawn with all of their rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma

import svmp
from svmp.inference.methods.groups import DrawnGroups, draw_groups
from svmp.inference.updaters import groups as engine_groups
from svmp.network.network import Network
from tests.examples import natural_of
from tests.inference.tools import ALL, advance, assert_same, begin, gallery
from tests.network.tools import anywhere, copy, optimum
from tests.programs import iterate, message_sum, optimise_locals

D, K, V = 6, 3, 8
"""Documents, topics and words of the smallest corpus."""


def corpus(documents: int, topics: int, words: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw documents of about `length` tokens from sharp topics."""
    rng = np.random.default_rng(8)
    phi = rng.dirichlet(np.full(words, 0.1), topics)
    lengths = rng.integers(length // 2, 2 * length, documents)
    shares = rng.dirichlet(np.full(topics, 0.3), documents) @ phi
    word = [rng.choice(words, n, p=p) for n, p in zip(lengths, shares, strict=True)]
    return np.repeat(np.arange(documents), lengths), np.concatenate(word)


def topics(documents: int = D, k: int = K, words: int = V, length: int = 6) -> svmp.Model:
    """Latent Dirichlet allocation; the tokens are not in the order of their documents."""
    doc, word = corpus(documents, k, words, length)
    order = np.random.default_rng(0).permutation(len(doc))
    doc, word = doc[order], word[order]
    coords = {"doc": documents, "topic": k, "word": words, "token": len(doc)}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.4, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def one_topic_each() -> svmp.Model:
    """A mixture of documents: all words of one come from one topic."""
    doc, word = corpus(D, K, V, 6)
    with svmp.Model(coords={"doc": D, "topic": K, "word": V, "token": len(doc)}) as model:
        share = svmp.Dirichlet("share", a=1, dims="topic")
        phi = svmp.Dirichlet("phi", a=0.4, dims=("topic", "word"))
        z = svmp.Categorical("z", p=share, dims="doc")
        svmp.Mixture("w", z[doc], svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def regression() -> svmp.Model:
    """An intercept for each group, slopes for all, unknown precisions, some values missing."""
    rng = np.random.default_rng(2)
    group, x = rng.integers(0, 5, 40), rng.normal(size=(40, 2))
    y = rng.normal(size=5)[group] + x @ [1.0, -2.0] + 0.3 * rng.normal(size=40)
    with svmp.Model(coords={"group": 5, "feature": 2, "row": 40}) as model:
        centre = svmp.Normal("centre", mu=0, tau=0.1)
        spread = svmp.Gamma("spread", alpha=2, beta=1)
        a = svmp.Normal("a", mu=centre, tau=spread, dims="group")
        b = svmp.Normal("b", mu=0, tau=1, dims="feature")
        noise = svmp.Gamma("noise", alpha=2, beta=1)
        mean = a[group] + svmp.dot(svmp.data(x, dims=("row", "feature")), b)
        gone = rng.random(40) < 0.2
        svmp.Normal("y", mu=mean, tau=noise, dims="row", observed=y, missing=gone)
    return model


def ratings(prices: bool = False) -> svmp.Model:
    """The paper's network; with `prices`, also a table of items that belongs to no user."""
    rng = np.random.default_rng(4)
    user, item = rng.integers(0, 7, 50), rng.integers(0, 5, 50)
    with svmp.Model(coords={"user": 7, "item": 6, "factor": 2}) as model:  # one item has no rating
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        mean = svmp.dot(u[user], v[item])
        svmp.Normal("r", mu=mean, tau=1, observed=rng.normal(size=50))
        if prices:
            price = rng.normal(size=6)
            svmp.Normal("price", mu=v.sum("factor"), tau=2, dims="item", observed=price)
    return model


NETWORKS = {
    "topics": (topics, "doc", ["z", "theta"]),
    "topics by token": (topics, "token", ["z"]),
    "one topic each": (one_topic_each, "doc", ["z"]),
    "regression": (regression, "group", ["a"]),
    "ratings by user": (ratings, "user", ["u"]),
    "ratings by item": (ratings, "item", ["v"]),
    "ratings and prices": (lambda: ratings(prices=True), "user", ["u"]),
}
on_networks = pytest.mark.parametrize("name", NETWORKS)
options = pytest.mark.parametrize("option", ["a", "b"])


@pytest.fixture
def exact(monkeypatch):
    """Optimise groups to many digits."""
    monkeypatch.setattr(engine_groups, "TOLERANCE", 1e-16)
    monkeypatch.setattr(engine_groups, "MOST_PASSES", 2000)


def updated(network: Network, q, over: str, option: str):
    """Optimise all groups, then update global variables as in full VB, or Jacobi in option (b)."""
    q = copy(q)
    optimise_locals(network, q, over)
    seen = q if option == "a" else copy(q)
    for name in network.default_order:
        if name not in network.grouped(over).group:
            for elements in network.groups[name]:
                q.natural[name][elements] = optimum(network, seen, name, elements)
                family = network.hidden[name].family.at(elements)
                q.moments[name][elements] = family.moments(q.natural[name][elements])
    return q


# --- groupings ------------------------------------------------------------------------------


@on_networks
def test_locals_of_a_grouping(name):
    model, over, own = NETWORKS[name]
    assert Network(model()).grouped(over).locals == own


def test_every_row_belongs_to_the_document_of_its_key():
    network = Network(topics())
    theta = network.edges["theta"][0]
    grouping = network.grouped("doc")
    for group in range(D):
        _, tokens = theta.rows_of(np.array([group]))
        for table in ("z", "w"):
            assert grouping.rows(table, np.array([group])).tolist() == sorted(tokens)
        assert grouping.sizes[group] == 1 + len(tokens)


def test_grouping_by_two_levels_of_keys_and_by_rows():
    """Pupils in schools in districts; the pupils' own weights follow their marks."""
    rng = np.random.default_rng(1)
    district, school = np.array([0, 0, 1, 1, 1]), rng.integers(0, 5, 30)
    with svmp.Model(coords={"district": 2, "school": 5, "pupil": 30}) as model:
        d = svmp.Normal("d", mu=0, tau=1, dims="district")
        s = svmp.Normal("s", mu=d[district], tau=1, dims="school")
        weight = svmp.Gamma("weight", alpha=2, beta=2, dims="pupil")
        svmp.Normal("mark", mu=s[school], tau=weight, dims="pupil", observed=rng.normal(size=30))
    network = Network(model)
    by_district, by_school = network.grouped("district"), network.grouped("school")
    assert by_district.group["mark"].tolist() == district[school].tolist()
    assert by_district.group["weight"].tolist() == district[school].tolist()
    assert set(by_district.locals) == {"d", "s", "weight"}
    assert by_school.group["weight"].tolist() == school.tolist()
    assert set(by_school.locals) == {"s", "weight"}


@pytest.mark.parametrize(
    ("over", "trouble"),
    [
        ("document", "no such dimension; it has"),
        ("word", "no observed variable depends on that dimension"),
        ("topic", r"'w' at \(0,\) belongs to two elements of 'topic', 0 and \d"),
    ],
)
def test_dims_that_do_not_group_the_rows_are_refused(over, trouble):
    with pytest.raises(svmp.ModelError, match=trouble):
        svmp.fit(topics(), svmp.Batch(2, over=over))


def test_row_in_two_groups_is_refused():
    home, away = np.array([0, 1, 2, 1]), np.array([1, 2, 0, 0])
    with svmp.Model(coords={"team": 3, "match": 4}) as model:
        skill = svmp.Normal("skill", dims="team")
        svmp.Normal("gap", mu=skill[home] - skill[away], tau=1, dims="match", observed=[1, 0, 2, 1])
    with pytest.raises(
        svmp.ModelError, match=r"'gap' at \(0,\) .* 0 and 1, so batches over 'team'"
    ):
        svmp.fit(model, svmp.Batch(1, over="team"))


def test_row_in_no_group_is_refused():
    design = sparse.csr_array(np.array([[1.0, 0], [0, 0]]))
    with svmp.Model(coords={"a": 2, "row": 2}) as model:
        x = svmp.Normal("x", dims="a")
        svmp.Normal("y", mu=svmp.dot(design, x), tau=1, dims="row", observed=[1, 2])
    with pytest.raises(svmp.ModelError, match=r"'y' at \(1,\) belongs to no element of 'a'"):
        svmp.fit(model, svmp.Batch(1, over="a"))


@pytest.mark.parametrize("over", [3, "", ["doc"]])
def test_over_must_be_a_name(over):
    with pytest.raises(svmp.ModelError, match="over must be text"):
        svmp.Batch(2, over=over)


# --- the update -----------------------------------------------------------------------------


@on_networks
@options
def test_batch_of_all_groups_optimises_them_and_is_full_vb_of_the_globals(name, option):
    model, over, _ = NETWORKS[name]
    network = Network(model())
    q = begin(network)
    found = advance(network, copy(q), svmp.Batch(ALL, option, over=over), 1)
    assert_same(found, updated(network, q, over, option), 1e-10)


def test_batch_of_all_groups_on_the_gallery_by_every_grouping_dim():
    divided = 0
    for model in gallery().values():
        for over in model.sizes:
            network = Network(model)
            try:
                network.grouped(over)
            except svmp.ModelError:
                continue
            divided += 1
            q = begin(network)
            found = advance(network, copy(q), svmp.Batch(ALL, over=over), 1)
            assert_same(found, updated(network, q, over, "a"), 1e-9)
    assert divided > 20


@on_networks
@pytest.mark.parametrize("size", [1, 2, 4])
def test_mean_target_over_all_draws_of_groups_is_the_optimum(name, size):
    model, over, _ = NETWORKS[name]
    if over == "token":
        return  # too many to enumerate
    network = Network(model())
    q = anywhere(network, 3)
    optimise_locals(network, q, over)
    grouping = network.grouped(over)
    subsets = [np.array(s) for s in combinations(range(grouping.count), size)]
    for variable in network.hidden:
        if variable in grouping.group:
            continue
        everyone = np.arange(network.hidden[variable].size)
        found = [
            message_sum(network, q, DrawnGroups(network, grouping, s), variable, everyone).total
            for s in subsets
        ]
        star = optimum(network, q, variable)
        assert np.mean(found, axis=0) == pytest.approx(star, rel=1e-9, abs=1e-9)
        assert np.std(found, axis=0).max() > 0


@options
def test_mean_update_over_all_draws_of_groups_is_the_optimum(option, exact, monkeypatch):
    """With unit steps the new value is the target; drawn documents do not affect each other."""
    network = Network(topics())
    q = anywhere(network, 3)
    subsets = [np.array(s) for s in combinations(range(D), 2)]
    found = []
    for subset in subsets:
        monkeypatch.setattr("svmp.inference.methods.batch.draw_groups", lambda *_, s=subset: s)
        method = svmp.Batch(2, option, over="doc")
        found.append(advance(network, copy(q), method, 1).natural["phi"])
    star = updated(network, q, "doc", option).natural["phi"]
    assert np.mean(found, axis=0) == pytest.approx(star, rel=1e-6)


def hoffman(model: svmp.Model, start: np.ndarray, steps, iterations: int, size: int) -> np.ndarray:
    """Return lambda of each topic and word by Hoffman et al.'s algorithm, written out."""
    network = Network(model)
    doc = network.grouped("doc").group["w"]
    word = model["w"].observed.astype(int)
    lam, count, topics = start.copy(), network.grouped("doc").count, len(start)
    for t in range(1, iterations + 1):
        batch = draw_groups(count, size, 0, t)
        log_phi = digamma(lam) - digamma(lam.sum(1, keepdims=True))
        total = np.zeros_like(lam)
        for d in batch:
            words = word[doc == d]
            gamma = np.ones(topics)
            for _ in range(2000):
                before = gamma
                log = log_phi[:, words] + digamma(gamma)[:, None]
                share = np.exp(log - log.max(0))
                share /= share.sum(0)
                gamma = 0.5 + share.sum(1)
                if np.abs(gamma - before).mean() < 1e-13:
                    break
            for n, w in enumerate(words):
                total[:, w] += share[:, n]
        rho = steps(svmp.StepContext("phi", t, np.array([count]), np.array([size])))
        lam = (1 - rho) * lam + rho * (0.4 + count / size * total)
    return lam


@options
def test_batch_over_documents_is_the_algorithm_of_hoffman_et_al(option, exact):
    model = topics(documents=30, words=12, length=10)
    network, steps = Network(model), svmp.RobbinsMonro(kappa=0.7, tau=1)
    q = begin(network)
    expected = hoffman(model, q.natural["phi"] + 1, steps, iterations=8, size=5)
    found = advance(network, q, svmp.Batch(5, option, over="doc"), 8, steps)
    assert found.natural["phi"] + 1 == pytest.approx(expected, rel=1e-6)


@on_networks
def test_group_variables_do_not_depend_on_their_previous_q(name):
    """Neither those of the groups drawn nor those of the others matter for the global variables."""
    model, over, own = NETWORKS[name]
    network = Network(model())
    one = begin(network)
    other = copy(one)
    for local in own:
        family = network.hidden[local].family
        other.natural[local] = natural_of(family, np.random.default_rng(0), len(one.natural[local]))
        other.moments[local] = family.moments(other.natural[local])
    for q in (one, other):
        advance(network, q, svmp.Batch(2, over=over), 2, svmp.Constant(0.3))
    for variable in network.hidden:
        same = one.natural[variable] == other.natural[variable]
        assert same.all() == (variable not in own)


def test_every_pass_counts_its_accesses(monkeypatch):
    """Each pass reads a token twice, for z and for theta; then each topic reads it once."""
    monkeypatch.setattr(engine_groups, "TOLERANCE", 0.0)
    monkeypatch.setattr(engine_groups, "MOST_PASSES", 3)
    network = Network(topics())
    method = svmp.Batch(2, over="doc")
    done = iterate(network, begin(network), method, svmp.Constant(0.1), 0, 1)
    tokens = len(network.grouped("doc").rows("w", method.draw(network, 0, 1).drawn))
    assert done.accesses == (3 * 2 + K) * tokens


def test_converged_groups_are_not_read_again(monkeypatch):
    network = Network(topics())
    read = {}
    for rest in (1e-1, 1e-3, 1e-6):
        monkeypatch.setattr(engine_groups, "TOLERANCE", rest)
        read[rest] = optimise_locals(network, begin(network), "doc")
    assert read[1e-1] < read[1e-3] < read[1e-6]


def test_step_context_has_the_numbers_of_groups():
    seen = {}

    def steps(context):
        seen[context.variable] = (
            context.children.tolist(),
            context.read.tolist(),
            context.coupling,
        )
        return 0.1

    network = Network(ratings(prices=True))
    iterate(network, begin(network), svmp.Batch(3, "b", over="user"), steps, 0, 1)
    # the sixth item has no rating, but a price, which is read; users have moved before
    assert seen == {"v": ([7] * 5 + [1], [3] * 5 + [1], 1)}
