"""Elements of a new model are matched with earlier ones by label, or the model is refused."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

import svmp
from svmp.network.dims.labels import plain_label
from svmp.network.dims.matching import match_dims, new_rows
from svmp.network.network import Network


def rates(coords, key=(0, 0), **options):
    with svmp.Model(coords=coords) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop", **options)
        svmp.Poisson("count", mu=rate[np.array(key)], observed=np.arange(len(key)))
    return model


def factors(coords):
    with svmp.Model(coords=coords) as model:
        z = svmp.Normal("z", mu=0, tau=1, dims=("row", "factor"))
        w = svmp.Normal("w", mu=0, tau=1, dims=("feature", "factor"))
        mu = svmp.dot(z, w)
        svmp.Normal("x", mu=mu, tau=1, dims=("row", "feature"), observed=np.ones((4, 3)))
    return model


def test_labels_are_matched_by_value():
    network = Network(rates({"shop": ["c", "a", "d"]}))
    match = match_dims(network, {"shop": ["a", "b", "c"]})["shop"]
    assert match.known.tolist() == [2, 0, -1]
    assert match.place.tolist() == [2, 0, 3]
    assert match.extent == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.int64(3), 3),
        (np.str_("a"), "a"),
        (np.datetime64("2024-02-29"), date(2024, 2, 29)),
        (np.datetime64("2024-02-29T12:00"), datetime(2024, 2, 29, 12)),
        (np.float64(0.5), 0.5),
    ],
)
def test_labels_of_numpy_are_those_of_python(one, other):
    assert plain_label(one) == other
    assert type(plain_label(one)) is type(other)


def test_unlabelled_dims_are_matched_by_position():
    match = match_dims(Network(rates({"shop": 3})), {"shop": 3})["shop"]
    assert match.known.tolist() == [0, 1, 2]
    assert match.same


def test_rows_of_observed_tables_are_new():
    with svmp.Model(coords={"coin": 3}) as model:
        p = svmp.Beta("p", alpha=1, beta=1, dims="coin")
        svmp.Binomial("heads", n=10, p=p, dims="coin", observed=[3, 5, 9])
    network = Network(model)
    assert new_rows(model, network.hidden.values(), network.observed.values()) == {"coin"}
    with pytest.raises(svmp.ModelError, match="nothing in the new model was there earlier"):
        svmp.fit(model).update(model)


def test_columns_of_observed_tables_are_matched_by_position():
    """Only 'feature' has hidden variables, so 'row' numbers the rows."""

    def means(values):
        with svmp.Model(coords={"row": len(values), "feature": 2}) as model:
            mu = svmp.Normal("mu", mu=0, tau=1, dims="feature")
            svmp.Normal("x", mu=mu, tau=1, dims=("row", "feature"), observed=values)
        return model

    values = np.arange(10.0).reshape(5, 2)
    fit = svmp.fit(means(values[:2])).update(means(values[2:]))
    np.testing.assert_allclose(fit.mean("mu"), values.sum(axis=0) / 6)


def test_ambiguous_rows_are_refused():
    sizes = {"row": 4, "feature": 3, "factor": 2}
    fit = svmp.fit(factors(sizes), max_sweeps=3)
    with pytest.raises(svmp.ModelError, match="either of 'row' and 'feature' may number"):
        fit.update(factors(sizes))
    update = fit.update(factors(sizes), new=["row"], max_sweeps=3)
    assert update["z"].plate == (4, 2)
    labelled = svmp.fit(factors({**sizes, "feature": ["a", "b", "c"]}), max_sweeps=3)
    again = labelled.update(factors({**sizes, "feature": ["c", "b", "a"]}), max_sweeps=3)
    assert again.coords["feature"] == ["a", "b", "c"]


REFUSED = {
    "another size": (rates({"shop": 3}), "'shop' had size 2 and now has 3: give labels in coords"),
    "labels only now": (rates({"shop": ["a", "b"]}), "'shop' has labels in coords, but had none"),
    "another family": (None, "'rate' was a Gamma and is a Beta in the new model"),
    "other dims": (None, r"'rate' had dims \('shop',\) and has \(\) in the new model"),
    "other names": (None, "the fit has 'rate', but the new model hides"),
    "other parents": (None, r"'rate' depended on \[\] and depends on \['b'\]"),
}


def refused(what):
    if REFUSED[what][0] is not None:
        return REFUSED[what][0]
    with svmp.Model(coords={"shop": 2}) as model:
        if what == "another family":
            p = svmp.Beta("rate", alpha=1, beta=1, dims="shop")
            svmp.Bernoulli("count", p=p[[0, 1]], observed=[0, 1])
        elif what == "other dims":
            rate = svmp.Gamma("rate", alpha=1, beta=1)
            svmp.Poisson("count", mu=rate, observed=[0, 1])
        else:
            names = ("b", "r") if what == "other names" else ("b", "rate")
            b = svmp.Gamma(names[0], alpha=1, beta=1)
            rate = svmp.Gamma(names[1], alpha=1, beta=b, dims="shop")
            svmp.Poisson("count", mu=rate[[0, 1]], observed=[0, 1])
    return model


@pytest.mark.parametrize("what", REFUSED)
def test_other_models_are_refused(what):
    fit = svmp.fit(rates({"shop": 2}))
    if what == "other parents":
        fit.posteriors["b"] = svmp.fit(refused(what))["b"]  # type: ignore[index]
    with pytest.raises(svmp.ModelError, match=REFUSED[what][1]):
        fit.update(refused(what))


def test_labels_that_are_gone_are_refused():
    with pytest.raises(svmp.ModelError, match="'shop' has no labels in coords, but had some"):
        svmp.fit(rates({"shop": ["a", "b"]})).update(rates({"shop": 2}))


def test_new_words_need_all_topics():
    def words(topics, names):
        with svmp.Model(coords={"topic": topics, "word": names}) as model:
            phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
            svmp.Categorical("w", p=phi[[0]], observed=[0])
        return model

    fit = svmp.fit(words(["a", "b"], ["x", "y"]))
    with pytest.raises(svmp.ModelError, match="all earlier labels of 'topic' must be declared"):
        fit.update(words(["a"], ["x", "z"]))
    more = fit.update(words(["b"], ["y", "x"]))
    np.testing.assert_allclose(more["phi"].a, [[1.5, 0.5], [0.5, 1.5]])


def test_vectors_keep_their_entries():
    def vectors(entries):
        with svmp.Model(coords={"entry": entries}) as model:
            mu = svmp.MvNormal("mu", mu=0, tau=np.eye(2), dims="entry")
            svmp.MvNormal("x", mu=mu, tau=np.eye(2), dims=("row", "entry"), observed=[[1, 2]])
        return model

    with pytest.raises(svmp.ModelError, match="'mu' has an entry for each 'entry'"):
        svmp.fit(vectors(["a", "b"])).update(vectors(["b", "a"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forget": 1.0}, "forget must be a number"),
        ({"forget": "all"}, "forget must be a number"),
        ({"forget": True}, "forget must be a number"),
        ({"forget": np.nan}, "forget must be a number"),
        ({"forget": np.array([0.1, 0.2])}, "forget must be a number"),
        ({"init": 3}, "init must be a dict by variable"),
        ({"new": "shop"}, "new must be a list of dims"),
        ({"new": ["shops"]}, "new names 'shops', which is no dim"),
        ({"sweeps": 3}, "update has no option 'sweeps'"),
        ({"forget": "learn", "checkpoint": "x"}, "checkpoint is not possible with forget='learn'"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    fit = svmp.fit(rates({"shop": 2}))
    with pytest.raises(svmp.ModelError, match=message):
        fit.update(rates({"shop": 2}), **options)
    with pytest.raises(svmp.ModelError, match=r"needs a svmp\.Model of the new rows"):
        fit.update([1, 2])
