"""Invalid declarations raise an error that names the variable.

Every case is one declaration in a valid model. It must raise svmp.ModelError at once, name the
variable, and leave the model unchanged.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import svmp

NAN, INF = float("nan"), float("inf")
X = [0.5, 1.5, 2.5]
EYE = np.eye(2)


def sound() -> svmp.Model:
    """Return a model with one variable of each kind."""
    with svmp.Model(coords={"user": 3, "k": 2, "word": 3, "none": 0}) as model:
        svmp.Normal("u", mu=0, tau=1, dims="user")
        svmp.Normal("v", mu=0, tau=1, dims=("user", "k"))
        svmp.Normal("s", mu=0, tau=1)
        svmp.Normal("seen", mu=0, tau=1, dims="user", observed=[1, NAN, 2], missing=True)
        svmp.MvNormal("m", mu=0, tau=EYE, dims="k")
        svmp.Wishart("W", nu=3, V=EYE, dims=("k", "k"))
        svmp.Wishart("W3", nu=4, V=np.eye(3), dims=("word", "word"))
        svmp.Gamma("g", alpha=1, beta=1)
        svmp.Beta("p", alpha=1, beta=1)
        w = svmp.Dirichlet("w", a=1, dims="k")
        svmp.Dirichlet("w3", a=1, dims="word")
        svmp.Categorical("z", p=w, dims="user")
        svmp.Categorical("plain_z", p=[0.5, 0.5], dims="user")
        svmp.Categorical("seen_z", p=w, dims="user", observed=[0, NAN, 1], missing=True)
        svmp.Poisson("n", mu=2)
    return model


Declare = Callable[[Any], Any]
Case = tuple[str, Declare, str, str]
"""Name, declaration, the name that the message must quote, and other text that it must contain."""


def normal(mu: Any, tau: Any = 1, **options: Any) -> svmp.Variable:
    return svmp.Normal("r", mu, tau, **{"observed": X, **options})


def row(mu: Any) -> svmp.Variable:
    return normal(mu, dims="row")


INDICES: list[Case] = [
    ("index too large", lambda d: normal(d["u"][[0, 3, 1]]), "u", "0..2"),
    ("index negative", lambda d: normal(d["u"][[0, -1, 1]]), "u", "-1"),
    ("index not whole", lambda d: normal(d["u"][[0.0, 1.0, 1.5]]), "u", "whole"),
    ("mask too short", lambda d: normal(d["u"][[True, False]]), "u", "3 elements"),
    ("mask of nothing", lambda d: normal(d["u"][np.zeros(3, bool)]), "u", "no element"),
    ("index a boolean", lambda d: normal(d["u"][True]), "u", "whole"),
    ("index of strings", lambda d: normal(d["u"][["a", "b", "c"]]), "u", "whole"),
    ("index None", lambda d: normal(d["u"][None]), "u", "whole"),
    ("slice of nothing", lambda d: normal(d["u"][2:2]), "u", "no element"),
    ("slice of labels", lambda d: normal(d["u"]["a":"b"]), "u", "whole"),
    ("index an ellipsis", lambda d: normal(d["u"][...]), "u", "whole"),
    ("index ragged", lambda d: normal(d["u"][[[0], [1, 2]]]), "u", "whole"),
    ("index random", lambda d: normal(d["u"][d["z"]]), "u", "Mixture"),
    ("index scaled", lambda d: row(d["u"][svmp.data([0, 0, 1], "row") * 2]), "u", ""),
    ("index a sum", lambda d: row(d["u"][svmp.data([0, 0, 1], "row") + 1]), "u", ""),
    ("indices too many", lambda d: normal(d["u"][0, 0]), "u", "2 indices"),
    ("index too short", lambda d: normal(d["u"][[0, 1]]), "r", "length 2"),
    ("index with too many axes", lambda d: normal(d["u"][[[0, 1, 2]]]), "r", "svmp.data"),
    ("key of another dimension", lambda d: normal(d["u"][svmp.data([0, 1], "x")]), "r", "'x'"),
]

DIMS: list[Case] = [
    ("fewer values than dims", lambda d: normal(0, dims="user", observed=[1.0]), "r", "user"),
    ("more dims than axes", lambda d: normal(0, dims=("user", "k")), "r", "(3,)"),
    ("one number with dims", lambda d: normal(0, dims="user", observed=1.0), "r", "user"),
    ("dimension without a size", lambda d: svmp.Normal("r", 0, 1, dims="huh"), "r", "huh"),
    ("dims a number", lambda d: svmp.Normal("r", 0, 1, dims=3), "r", "dims"),
    ("dims of numbers", lambda d: svmp.Normal("r", 0, 1, dims=("user", 3)), "r", "3"),
    ("dims of None", lambda d: svmp.Normal("r", 0, 1, dims=("user", None)), "r", "None"),
    ("a dimension twice", lambda d: svmp.Normal("r", 0, 1, dims=("user", "user")), "r", "user"),
    ("a dimension twice, with the remedy",
     lambda d: svmp.Dirichlet("r", 1, dims=("user", "user")), "r", "user_2"),
    ("a dimension twice, observed", lambda d: normal(0, dims=("user", "user"), observed=np.eye(3)),
     "r", "user"),
    ("vector without dims", lambda d: svmp.MvNormal("r", [0, 0], EYE), "r", "dims="),
    ("matrix with one dim", lambda d: svmp.Wishart("r", 3, EYE, dims="k"), "r", "2 axes"),
    ("matrix not square", lambda d: svmp.Wishart("r", 3, EYE, dims=("user", "k")), "r", "user"),
    ("parent with a dimension more", lambda d: normal(d["v"], dims="user"), "r", "'k'"),
    ("parent with a dimension of its own", lambda d: normal(d["u"]), "r", "'user'"),
    ("array too short", lambda d: normal([1.0, 2.0], dims="user"), "r", "length 2"),
    ("array for a number", lambda d: svmp.Normal("r", [1.0, 2.0], 1), "r", "add dims="),
    ("array with too many axes", lambda d: normal(np.ones((2, 2, 3))), "r", "svmp.data"),
    ("labels too short", lambda d: normal(d["u"] * svmp.data([1, 2], "user"), dims="user"),
     "r", "length 2"),
    ("labels unknown", lambda d: normal(d["u"] * svmp.data([1, 2], "huh"), dims="user"),
     "r", "huh"),
    ("mean vector too long", lambda d: svmp.MvNormal("r", [0, 0, 0], EYE, dims="k"), "r", "(2,)"),
    ("matrix too large", lambda d: svmp.MvNormal("r", [0, 0], np.eye(3), dims="k"), "r", "(2, 2)"),
    ("matrix a number", lambda d: svmp.MvNormal("r", [0, 0], 2.0, dims="k"), "r", "(2, 2)"),
    ("parent vector too short", lambda d: svmp.MvNormal("r", d["m"], np.eye(3), dims="word"),
     "r", "'m'"),
    ("parent matrix too large", lambda d: svmp.MvNormal("r", 0, d["W3"], dims="k"), "r", "'W3'"),
    ("probabilities of other length",
     lambda d: svmp.Multinomial("r", 2, d["w"], dims=("row", "word"), observed=[[1, 1, 0]]),
     "r", "'w'"),
]  # fmt: skip

NAMES: list[Case] = [
    ("name taken", lambda d: svmp.Normal("u", 0, 1), "u", "taken"),
    ("name empty", lambda d: svmp.Normal("", 0, 1), "", "name"),
    ("name None", lambda d: svmp.Normal(None, 0, 1), "", "name"),
    ("name a number", lambda d: svmp.Normal(3, 0, 1), "", "name"),
    ("name a list", lambda d: svmp.Normal(["r"], 0, 1), "", "name"),
    ("name of two lines", lambda d: svmp.Normal("a\nb", 0, 1), "", "name"),
]

VALUES: list[Case] = [
    ("NaN", lambda d: normal(0, observed=[1, NAN]), "r", "missing=True"),
    ("infinity", lambda d: normal(0, observed=[1, INF]), "r", "inf"),
    ("infinity beside missing", lambda d: normal(0, observed=[INF, NAN], missing=True), "r", "inf"),
    ("NaN in a vector", lambda d: svmp.MvNormal("r", 0, EYE, observed=[[1, NAN]]), "r", "nan"),
    ("negative count", lambda d: svmp.Poisson("r", d["g"], observed=[1, -1]), "r", "-1"),
    ("half a count", lambda d: svmp.Poisson("r", d["g"], observed=[1, 0.5]), "r", "0.5"),
    ("infinite count", lambda d: svmp.Poisson("r", d["g"], observed=[1, INF]), "r", "inf"),
    ("rating for a category", lambda d: svmp.Categorical("r", d["w3"], observed=[1, 2, 3]),
     "r", "3"),
    ("negative category", lambda d: svmp.Categorical("r", d["w3"], observed=[-1]), "r", "-1"),
    ("half a category", lambda d: svmp.Categorical("r", d["w3"], observed=[0.5]), "r", "0.5"),
    ("2 for a Bernoulli", lambda d: svmp.Bernoulli("r", d["p"], observed=[0, 2]), "r", "2"),
    ("more heads than trials", lambda d: svmp.Binomial("r", 4, d["p"], observed=[5]), "r", "5"),
    ("negative heads", lambda d: svmp.Binomial("r", 4, d["p"], observed=[-1]), "r", "-1"),
    ("counts that miss their sum",
     lambda d: svmp.Multinomial("r", 4, d["w3"], observed=[[1, 1, 1]]), "r", "[1, 1, 1]"),
    ("1 for a Beta", lambda d: svmp.Beta("r", 1, 1, observed=[0.5, 1.0]), "r", "1.0"),
    ("-0.1 for a Beta", lambda d: svmp.Beta("r", 1, 1, observed=[-0.1]), "r", "-0.1"),
    ("shares that miss 1", lambda d: svmp.Dirichlet("r", 1, observed=[[0.5, 0.4, 0.2]]),
     "r", "0.4"),
    ("share of 0", lambda d: svmp.Dirichlet("r", 1, observed=[[0.5, 0.5, 0]]), "r", "0.5"),
    ("0 for a Gamma", lambda d: svmp.Gamma("r", 1, 1, observed=[0.0]), "r", "0.0"),
    ("negative time", lambda d: svmp.Exponential("r", d["g"], observed=[-1.0]), "r", "-1.0"),
    ("matrix not symmetric", lambda d: svmp.Wishart("r", 3, EYE, observed=[[1, 0.5], [0, 1]]),
     "r", "0.5"),
    ("matrix not positive", lambda d: svmp.Wishart("r", 3, EYE, observed=[[1, 2], [2, 1]]),
     "r", "2"),
    ("values not square", lambda d: svmp.Wishart("r", 3, EYE, observed=np.ones((2, 3))), "r", ""),
    ("empty table", lambda d: normal(0, observed=[]), "r", "empty"),
    ("empty dimension", lambda d: normal(0, dims="none", observed=[]), "r", "empty"),
    ("strings", lambda d: normal(0, observed=["a", "b"]), "r", "not numbers"),
    ("numbers as strings", lambda d: normal(0, observed=["1", "2"]), "r", "not numbers"),
    ("a string", lambda d: normal(0, observed="abc"), "r", "not numbers"),
    ("None among values", lambda d: normal(0, observed=[None, 1.0]), "r", ""),
    ("a dict", lambda d: normal(0, observed={"a": 1}), "r", "not numbers"),
    ("a set", lambda d: normal(0, observed={1.0, 2.0}), "r", "not numbers"),
    ("ragged values", lambda d: normal(0, observed=[[1], [1, 2]]), "r", "not numbers"),
    ("complex values", lambda d: normal(0, observed=[1j]), "r", "not numbers"),
    ("dates", lambda d: normal(0, observed=np.array(["2020-01-01"], dtype="M8[D]")),
     "r", "not numbers"),
    ("sparse values", lambda d: normal(0, observed=sparse.eye_array(3)), "r", "not numbers"),
    ("a generator", lambda d: normal(0, observed=(x for x in X)), "r", "not numbers"),
    ("a variable", lambda d: normal(0, observed=d["u"]), "r", "not numbers"),
    ("numbers too large to square", lambda d: normal(0, observed=[1.0, 1e300]), "r", "1e+300"),
]  # fmt: skip

MISSING: list[Case] = [
    ("a vector in part",
     lambda d: svmp.MvNormal("r", 0, EYE, observed=[[1, NAN], [1, 2]], missing=True), "r", "part"),
    ("a vector masked in part",
     lambda d: svmp.MvNormal("r", 0, EYE, observed=EYE, missing=EYE == 1), "r", "part"),
    ("mask too short", lambda d: normal(0, missing=[True, False]), "r", "(3,)"),
    ("mask too deep", lambda d: normal(0, missing=np.zeros((3, 2), bool)), "r", "(3,)"),
    ("mask of numbers", lambda d: normal(0, missing=[1, 0, 0]), "r", "int64"),
    ("mask a word", lambda d: normal(0, missing="yes"), "r", "booleans"),
    ("mask None", lambda d: normal(0, missing=None), "r", "booleans"),
    ("mask ragged", lambda d: normal(0, missing=[[True], [True, False]]), "r", "booleans"),
    ("missing but hidden", lambda d: svmp.Normal("r", 0, 1, missing=[True]), "r", "no observed"),
]  # fmt: skip

CONJUGACY: list[Case] = [
    ("Gamma mean", lambda d: normal(d["g"]), "r", "Gamma 'g'; a mean or logit needs numbers, or"),
    ("Normal precision", lambda d: normal(0, d["s"]), "r",
     "Normal 's'; a precision or rate needs a positive number, a Gamma"),
    ("Normal rate", lambda d: svmp.Poisson("r", d["s"], observed=[1]), "r", "Normal 's'; a "),
    ("Normal beta", lambda d: svmp.Gamma("r", 1, d["s"]), "r", "Normal 's'; a "),
    ("Beta rate", lambda d: svmp.Exponential("r", d["p"], observed=X), "r", "Beta 'p'; a "),
    ("Dirichlet probability", lambda d: svmp.Bernoulli("r", d["w"], observed=[1]), "r",
     "Dirichlet 'w'; a probability needs"),
    ("Beta probabilities", lambda d: svmp.Categorical("r", d["p"], observed=[1]), "r",
     "Beta 'p'; probabilities need"),
    ("Gamma mean vector", lambda d: svmp.MvNormal("r", d["g"], EYE, dims="k"), "r",
     "Gamma 'g'; a mean vector needs"),
    ("Gamma precision matrix", lambda d: svmp.MvNormal("r", 0, d["g"], dims="k"), "r",
     "Gamma 'g'; a precision matrix needs"),
    ("Gamma in a sum of vectors", lambda d: svmp.MvNormal("r", d["m"] + d["g"], EYE, dims="k"),
     "r", "Gamma 'g'; a mean vector needs"),
    ("array of another length in a mean vector",
     lambda d: svmp.MvNormal("r", d["m"] + np.ones(5), EYE, dims="k"), "r", "length 5"),
    ("two matrices in a precision", lambda d: svmp.MvNormal("r", 0, d["g"] * EYE * EYE, dims="k"),
     "r", "not a multiple of one matrix"),
    ("no matrix in a precision", lambda d: svmp.MvNormal("r", 0, d["g"] * 2, dims="k"), "r",
     "not a multiple of one matrix; a precision matrix needs"),
    ("matrix that is not of full rank",
     lambda d: svmp.MvNormal("r", 0, d["g"] * np.ones_like(EYE), dims="k"), "r", "improper; add"),
    ("matrix that is not positive definite",
     lambda d: svmp.MvNormal("r", 0, d["g"] * -np.asarray(EYE), dims="k"), "r",
     "a precision matrix needs"),
    ("random alpha", lambda d: svmp.Gamma("r", d["g"], 1), "r", "no conjugate prior"),
    ("random a", lambda d: svmp.Dirichlet("r", d["g"], dims="k"), "r", "no conjugate prior"),
    ("random n", lambda d: svmp.Binomial("r", d["n"], 0.5, observed=[1]), "r", "no conjugate"),
    ("random Beta", lambda d: svmp.Beta("r", d["g"], 1), "r", "no conjugate prior"),
    ("random nu", lambda d: svmp.Wishart("r", d["g"], EYE, dims=("k", "k")), "r", "no conjugate"),
    ("the same variable twice", lambda d: normal(d["s"] * d["s"]), "s", "twice"),
    ("two of its elements", lambda d: normal(d["u"][0] * d["u"][1]), "u", "twice"),
    ("twice in a larger product", lambda d: normal((d["s"] + 1) * (d["s"] - 1)), "s", "twice"),
    ("twice in a dot", lambda d: normal(svmp.dot(d["m"], d["m"])), "m", "twice"),
    ("twice in a precision", lambda d: normal(0, d["g"] * d["g"]), "g", "twice"),
    ("a square", lambda d: normal(d["s"] ** 2), "s", ""),
    ("over a variable", lambda d: normal(1 / d["s"]), "s", "division"),
    ("a variable over a variable", lambda d: normal(d["s"] / d["g"]), "g", "division"),
    ("sum for a precision", lambda d: normal(0, d["g"] + 1), "r", "sum"),
    ("dot for a rate", lambda d: svmp.Poisson("r", svmp.dot([1, 2], d["w"]), observed=[1]),
     "r", "Dirichlet 'w'"),
    ("negative times a precision", lambda d: normal(0, -2 * d["g"]), "r", "not positive"),
    ("zeros times a rate", lambda d: svmp.Poisson("r", d["g"] * [1, 0], observed=[1, 2]),
     "r", "not positive"),
]  # fmt: skip

NUMBERS: list[Case] = [
    ("negative tau", lambda d: svmp.Normal("r", 0, -1), "r", "positive"),
    ("one negative tau", lambda d: normal(0, [1, 2, -3]), "r", "positive"),
    ("tau of 0", lambda d: svmp.Normal("r", 0, 0), "r", "positive"),
    ("infinite tau", lambda d: svmp.Normal("r", 0, INF), "r", "infinity"),
    ("NaN mean", lambda d: svmp.Normal("r", NAN, 1), "r", "NaN"),
    ("NaN times a variable", lambda d: normal(d["s"] * NAN), "s", "NaN"),
    ("NaN in a design", lambda d: normal(svmp.dot([1, NAN, 2], d["u"])), "u", "NaN"),
    ("over 0", lambda d: normal(d["s"] / 0), "s", ""),
    ("over text", lambda d: normal(d["s"] / "two"), "s", ""),
    ("mean None", lambda d: svmp.Normal("r", None, 1), "r", "None"),
    ("mean a string", lambda d: svmp.Normal("r", "3x", 1), "r", "str '3x'"),
    ("mean a number as string", lambda d: svmp.Normal("r", "3", 1), "r", "str '3'"),
    ("mean ragged", lambda d: svmp.Normal("r", [[1], [1, 2]], 1), "r", "list"),
    ("mean complex", lambda d: svmp.Normal("r", 1j, 1), "r", "complex"),
    ("mean an object", lambda d: svmp.Normal("r", object(), 1), "r", "object"),
    ("mean a component", lambda d: svmp.Normal("r", svmp.Normal.dist(), 1), "r", "Component"),
    ("mean sparse", lambda d: normal(sparse.eye_array(3)), "r", "svmp.dot"),
    ("mean too large to square", lambda d: svmp.Normal("r", 1e300, 1), "r", ""),
    ("negative alpha", lambda d: svmp.Gamma("r", -1, 1), "r", "alpha must be positive"),
    ("negative beta", lambda d: svmp.Gamma("r", 1, -1), "r", "positive"),
    ("negative Beta alpha", lambda d: svmp.Beta("r", -1, 1), "r", "alpha must be positive"),
    ("negative a", lambda d: svmp.Dirichlet("r", [1, -1], dims="k"), "r", "a must be positive"),
    ("negative rate", lambda d: svmp.Poisson("r", -2), "r", "positive"),
    ("negative n", lambda d: svmp.Binomial("r", -2, 0.5), "r", "n must be whole"),
    ("half an n", lambda d: svmp.Multinomial("r", 2.5, d["w"], dims="k"), "r", "n must be whole"),
    ("p of 1.5", lambda d: svmp.Bernoulli("r", 1.5), "r", "between 0 and 1"),
    ("p of 0", lambda d: svmp.Bernoulli("r", 0), "r", "between 0 and 1"),
    ("p that misses 1", lambda d: svmp.Categorical("r", [0.5, 0.6]), "r", "add up to 1"),
    ("p a number", lambda d: svmp.Categorical("r", 0.5), "r", "add up to 1"),
    ("p with a zero", lambda d: svmp.Categorical("r", [1.0, 0.0]), "r", "positive"),
    ("tau not positive", lambda d: svmp.MvNormal("r", 0, -EYE, dims="k"), "r", "positive def"),
    ("tau not symmetric", lambda d: svmp.MvNormal("r", 0, [[1, 0.9], [0, 1]], dims="k"),
     "r", "symmetric"),
    ("nu too small", lambda d: svmp.Wishart("r", 1, EYE, dims=("k", "k")), "r", "nu must be"),
    ("nu of a rate", lambda d: svmp.Wishart("r", 1, rate=d["W"], dims=("k", "k")), "r", "than 1"),
    ("rate not positive", lambda d: svmp.Wishart("r", 3, rate=-EYE, dims=("k", "k")), "r",
     "positive definite"),
    ("V and rate", lambda d: svmp.Wishart("r", 3, EYE, rate=EYE, dims=("k", "k")), "r",
     "one of V and rate"),
    ("V not positive", lambda d: svmp.Wishart("r", 3, -EYE, dims=("k", "k")), "r", "V must be"),
]  # fmt: skip

DOTS: list[Case] = [
    ("dot of which axis", lambda d: svmp.dot(d["v"], d["v"]), "v", "dim="),
    ("dot without an axis", lambda d: svmp.dot(d["u"], d["m"]), "u", "dim="),
    ("dot of arrays", lambda d: svmp.dot(EYE, EYE), "", "variable"),
    ("dot with a number", lambda d: svmp.dot(2.0, d["u"]), "u", "axis"),
    ("dot with a string", lambda d: svmp.dot("abc", d["u"]), "u", "str 'abc'"),
    ("design too narrow", lambda d: normal(svmp.dot(np.ones((3, 2)), d["u"])), "r", "'user'"),
    ("design too short", lambda d: normal(svmp.dot(np.ones((2, 3)), d["u"])), "r", "length 2"),
    ("sparse design too narrow",
     lambda d: normal(svmp.dot(sparse.csr_array(np.ones((3, 2))), d["u"])), "r", "'user'"),
    ("sparse design too short",
     lambda d: normal(svmp.dot(sparse.csr_array(np.ones((2, 3))), d["u"])), "r", "length 2"),
    ("NaN in a sparse design", lambda d: svmp.dot(sparse.csr_array([[NAN, 1, 1]]), d["u"]),
     "u", "NaN"),
    ("two sparse designs",
     lambda d: normal(
         svmp.dot(sparse.eye_array(3), d["u"]) * svmp.dot(sparse.csr_array(np.ones((3, 2))), d["m"])
     ), "u", "one sparse design"),
    ("sum over another axis", lambda d: d["u"].sum("huh"), "u", "huh"),
    ("sum over a constant's axis", lambda d: (d["u"] + 1).sum("user"), "u", "user"),
    ("sum over a number", lambda d: d["u"].sum(0), "u", ""),
    ("sum over nothing", lambda d: d["u"].sum(None), "u", ""),
]  # fmt: skip


def mixture(d: Any, z: Any, component: Any, **options: Any) -> svmp.Variable:
    return svmp.Mixture("r", z, component, **{"dims": "user", "observed": X, **options})


MIXTURES: list[Case] = [
    ("component a variable", lambda d: mixture(d, d["z"], d["m"]), "r", "svmp.Normal.dist"),
    ("component a class", lambda d: mixture(d, d["z"], svmp.Normal), "r", "svmp.Normal.dist"),
    ("choice an array", lambda d: mixture(d, [0, 1, 0], svmp.Normal.dist(d["m"])), "r",
     "Categorical"),
    ("choice a Dirichlet", lambda d: mixture(d, d["w"], svmp.Normal.dist(d["m"])), "r",
     "Dirichlet 'w'; the choice among components needs a Categorical"),
    ("choice scaled", lambda d: mixture(d, d["z"] * 2, svmp.Normal.dist(d["m"])), "r", "product"),
    ("choice None", lambda d: mixture(d, None, svmp.Normal.dist(d["m"])), "r", "Categorical"),
    ("components without a dimension",
     lambda d: mixture(d, d["plain_z"], svmp.Normal.dist(d["m"])), "r", "'plain_z'"),
    ("components on the plate",
     lambda d: mixture(d, d["z"], svmp.Normal.dist(d["m"]), dims=("user", "k"),
                       observed=np.ones((3, 2))), "r", "'k'"),
    ("choice of other rows",
     lambda d: mixture(d, d["z"], svmp.Normal.dist(d["m"]), dims="row"), "r", "'user'"),
    ("a component's parameter not conjugate",
     lambda d: mixture(d, d["z"], svmp.Normal.dist(d["g"])), "r", "Gamma 'g'"),
    ("a component's value",
     lambda d: mixture(d, d["z"], svmp.Poisson.dist(d["g"])), "r", "Poisson"),
]  # fmt: skip


def vector(tau: Any, **options: Any) -> svmp.Variable:
    return svmp.MvNormal("r", 0, tau, **{"dims": "k", **options})


MATRICES: list[Case] = [
    ("diagonal of a sum", lambda d: vector(svmp.diag(d["g"] + 1)), "r", "sum"),
    ("diagonal not positive", lambda d: vector(svmp.diag(-d["g"])), "r", "not positive"),
    ("diagonal of Normals", lambda d: vector(svmp.diag(d["s"])), "r", "Normal 's'"),
    ("diagonal of a Wishart", lambda d: vector(svmp.diag(d["W"])), "r", "Wishart 'W'"),
    ("diagonal of NaN", lambda d: vector(svmp.diag(d["g"] * NAN)), "g", "NaN"),
    ("diagonal too long", lambda d: vector(svmp.diag([1, 2, 3])), "r", "length 3"),
    ("diagonal for a number", lambda d: normal(0, svmp.diag(d["g"])), "r", "a diagonal matrix"),
    ("diagonal for probabilities", lambda d: svmp.Categorical("r", svmp.diag(d["g"])), "r",
     "a diagonal matrix"),
    ("diagonal for numbers", lambda d: svmp.Gamma("r", svmp.diag(d["g"]), 1), "r", "no conjugate"),
    ("diagonal times a vector", lambda d: svmp.dot(svmp.diag(d["g"]), d["m"]), "m", "Diagonal"),
    ("sum of Wisharts", lambda d: vector(d["W"] + d["W"]), "r", "sum"),
    ("product of Wisharts", lambda d: vector(d["W"] * d["W"]), "W", "twice"),
    ("negative Wishart", lambda d: vector(-d["W"]), "r", "not positive"),
    ("multiple of another size", lambda d: vector(2 * d["W3"]), "r", "'W3'"),
    ("Normal times a Wishart", lambda d: vector(d["s"] * d["W"]), "r", "Normal 's'"),
    ("vectors of length 0", lambda d: svmp.MvNormal("r", 0, np.eye(0), dims="none"), "r", "none"),
]  # fmt: skip

OTHERS: list[Case] = [
    ("Python's own sum", lambda d: sum(d["u"]), "u", '.sum("user")'),
    ("a power of 2", lambda d: 2 ** d["s"], "s", "conjugate"),
    ("an array over a variable", lambda d: np.ones(3) / d["u"], "u", "division"),
    ("coefficient too large", lambda d: normal(1e300 * d["s"]), "r", "1e+100"),
    ("coefficients too large", lambda d: normal(1e60 * (d["s"] * [1, 1, 1e60])), "r", "1e+100"),
    ("sparse design too large", lambda d: normal(svmp.dot(1e300 * sparse.eye_array(3), d["u"])),
     "r", "1e+100"),
    ("rate too small", lambda d: normal(0, [1e-200] * 3 * (d["g"] * 1e-200)), "r", "64-bit"),
    ("design of one column", lambda d: normal(svmp.dot([[1], [2], [3]], d["u"])), "r", "'user'"),
    ("masked numbers", lambda d: normal(np.ma.array(X, mask=[0, 1, 0])), "r", "NaN"),
    ("a number of 400 digits", lambda d: normal(10**400), "r", "int"),
    ("a list of variables", lambda d: normal([d["s"], d["s"]]), "r", "list"),
    ("a set of dims", lambda d: normal(0, dims={"user"}), "r", "dims"),
    ("a dim that ends in a prime", lambda d: normal(0, dims="a'"), "r", "prime"),
    ("three dims the same", lambda d: svmp.Wishart("r", 3, EYE, dims=("k",) * 3), "r", "'k'"),
    ("a wrong name", lambda d: svmp.Gamma("r", alpha=1, beta=1, eta=2), "r", "has an eta"),
    ("a choice that is fixed",
     lambda d: mixture(d, svmp.data([0, 1, 0], "user"), svmp.Normal.dist(d["m"])), "r",
     "needs a Categorical"),
    ("trials of the components",
     lambda d: mixture(d, d["z"], svmp.Binomial.dist(svmp.data([3, 4], "k"), 0.5)), "r", "same"),
    ("counts that miss the n of their row",
     lambda d: svmp.Multinomial("r", [2, 4], d["w"], observed=[[1, 1], [1, 2]]), "r",
     "adds up to 3, where n is 4"),
    ("counts below 0 that add up to n",
     lambda d: svmp.Multinomial("r", 4, d["w"], observed=[[-1, 5], [2, 2]]), "r",
     "values are whole numbers from 0 that add up to n"),
]  # fmt: skip

CASES = [
    *INDICES, *DIMS, *NAMES, *VALUES, *MISSING, *CONJUGACY, *NUMBERS, *DOTS, *MIXTURES, *MATRICES,
    *OTHERS,
]  # fmt: skip


def assert_sentence(text: str) -> None:
    """Check that a message is one sentence, without internals."""
    assert text
    assert "\n" not in text
    assert not re.search(r"\.\s+[A-Z]", text)
    assert len(text) < 250


@pytest.mark.parametrize(
    ("declare", "name", "says"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_invalid_declarations_are_refused(declare: Declare, name: str, says: str) -> None:
    model = sound()
    variables, sizes = dict(model.variables), dict(model.sizes)
    with model, pytest.raises(svmp.ModelError) as caught:
        declare(model)
    text = str(caught.value)
    assert_sentence(text)
    assert not name or f"'{name}'" in text
    assert says in text
    assert model.variables == variables
    assert model.sizes == sizes


@pytest.mark.parametrize(
    ("coords", "says"),
    [
        ({"a": -1}, "'a'"),
        ({"a": 2.5}, "'a'"),
        ({"a": None}, "'a'"),
        ({"a": NAN}, "'a'"),
        ({"a": "abc"}, "'a'"),
        ({3: 3}, "3"),
        (["a"], "coords"),
        ("a", "coords"),
        (3, "coords"),
    ],
    ids=str,
)
def test_invalid_coords_are_refused(coords: Any, says: str) -> None:
    with pytest.raises(svmp.ModelError) as caught:
        svmp.Model(coords=coords)
    assert_sentence(str(caught.value))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "dims", "says"),
    [
        ([1, 2], ("a", "b"), "1 axes"),
        ([1, NAN], "a", "NaN"),
        ([[1], [1, 2]], "a", "number"),
        ([1, 2], 3, "dims"),
        ([[1, 2]], ("a", "a"), "'a'"),
    ],
    ids=str,
)
def test_invalid_data_is_refused(values: Any, dims: Any, says: str) -> None:
    with pytest.raises(svmp.ModelError) as caught:
        svmp.data(values, dims=dims)
    assert_sentence(str(caught.value))
    assert says in str(caught.value)


def test_variables_outside_a_model_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match="'lost' is declared outside of a model"):
        svmp.Normal("lost", mu=0, tau=1)


@pytest.mark.parametrize("same", [True, False], ids=["same name", "another name"])
def test_variables_of_another_model_are_refused(same: bool) -> None:
    """It would be fitted as if it belonged to this model, or not at all."""
    with svmp.Model() as one:
        stranger = svmp.Normal("stranger", mu=0, tau=1)
    with svmp.Model() as other:
        svmp.Normal("stranger" if same else "own", mu=0, tau=1)
        with pytest.raises(svmp.ModelError) as caught:
            svmp.Normal("r", mu=stranger, tau=1, observed=X)
    assert "'stranger'" in str(caught.value)
    assert "'r'" in str(caught.value)
    assert list(one.variables) == ["stranger"]
    assert "r" not in other.variables


@pytest.mark.parametrize(
    "declare",
    [
        lambda s: svmp.MvNormal("r", 0, svmp.diag(s["g"]), dims="k"),
        lambda s: svmp.MvNormal("r", 0, 2 * s["W"], dims="k"),
        lambda s: svmp.Mixture("r", s["z"], svmp.Normal.dist(0, 1), dims="user", observed=X),
        lambda s: normal(s["u"][[0, 1, 2]] + 1),
        lambda s: normal(0, 2 * s["g"]),
    ],
    ids=["diagonal", "multiple", "choice", "mean", "precision"],
)
def test_variables_of_another_model_are_refused_in_every_parameter(declare: Declare) -> None:
    stranger = sound()
    with sound(), pytest.raises(svmp.ModelError, match=r"'r': '.*' belongs to another model"):
        declare(stranger)


def test_constant_choices_are_not_reported_as_products() -> None:
    model = sound()
    with model, pytest.raises(svmp.ModelError) as caught:
        mixture(model, [0, 1, 0], svmp.Normal.dist(model["m"]))
    assert "product" not in str(caught.value)


def test_trials_that_differ_between_components_are_refused_or_exact() -> None:
    """A Binomial's base measure depends on n, so it depends on the component here."""
    p, q, n, x = np.array([0.3, 0.7]), np.array([0.2, 0.6]), np.array([3, 5]), np.array([1, 2, 3])
    with svmp.Model(coords={"k": 2, "row": 3}) as model:
        z = svmp.Categorical("z", p=svmp.data(p, dims="k"), dims="row")
        component = svmp.Binomial.dist(n=svmp.data(n, dims="k"), p=svmp.data(q, dims="k"))
        with contextlib.suppress(svmp.ModelError):
            svmp.Mixture("x", z, component, dims="row", observed=x)
    if "x" in model.variables:
        evidence = np.log((p * stats.binom.pmf(x[:, None], n, q)).sum(axis=1)).sum()
        assert svmp.fit(model, svmp.FullVB(), max_sweeps=2).bound == pytest.approx(evidence)


def test_a_failed_declaration_can_be_repeated() -> None:
    model = sound()
    with model:
        with pytest.raises(svmp.ModelError):
            svmp.Normal("r", mu=model["u"], tau=-1, dims="user", observed=X)
        svmp.Normal("r", mu=model["u"], tau=1, dims="user", observed=X)
    assert svmp.fit(model, svmp.FullVB()).status == "converged"


def test_an_error_closes_the_model() -> None:
    with pytest.raises(svmp.ModelError), svmp.Model():
        svmp.Normal("r", mu=0, tau=-1)
    with pytest.raises(svmp.ModelError, match="outside"):
        svmp.Normal("r", mu=0, tau=1)


def test_the_innermost_model_is_the_open_one() -> None:
    with svmp.Model() as outer:
        with svmp.Model() as inner:
            svmp.Normal("x", mu=0, tau=1)
        svmp.Normal("y", mu=0, tau=1)
    assert list(inner.variables) == ["x"]
    assert list(outer.variables) == ["y"]


# --- unusual but valid input ----------------------------------------------------------------


class Column:
    """An object that converts to an array, like a column of a data frame."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize(
    "form",
    [
        list, tuple, np.array, Column, np.ma.array, lambda x: np.array(x, dtype=object),
        lambda x: np.array(x, dtype=np.float32), lambda x: np.array(x)[::-1][::-1], memoryview,
    ],
    ids=["list", "tuple", "array", "column", "masked", "object", "float32", "view", "buffer"],
)  # fmt: skip
def test_arrays_of_any_numeric_type_are_accepted(form: Callable[[Any], Any]) -> None:
    values = np.array([0.5, 1.5, 2.5])
    keys = np.array([0, 1, 0])
    key = form(keys) if form in (list, np.array, Column, memoryview) else keys
    given = form(values if form is memoryview else values.tolist())
    with svmp.Model(coords={"a": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="a")
        svmp.Normal("r", mu=u[key], tau=1, observed=given)
    np.testing.assert_allclose(svmp.fit(model, svmp.FullVB()).mean("u"), [1.0, 0.75])


def test_a_model_keeps_copies_of_the_users_arrays() -> None:
    """Changing the originals afterwards has no effect."""
    x, key, numbers, mean = np.array(X), np.array([0, 1, 2]), np.ones(3), np.zeros(3)
    design, labels, mask = sparse.csr_array(np.eye(3)), ["a", "b", "c"], np.zeros(3, dtype=bool)

    def declared() -> svmp.Model:
        with svmp.Model(coords={"user": labels}) as model:
            u = svmp.Normal("u", mu=mean, tau=numbers, dims="user")
            mu = u[key] * numbers + svmp.dot(design, u) + svmp.data(numbers, "row")
            mu = mu + u[svmp.data(key, "row")]
            svmp.Normal("r", mu, svmp.data(numbers, "row"), dims="row", observed=x, missing=mask)
        return model

    expected = svmp.fit(declared(), svmp.FullVB())
    model = declared()
    for array in (x, key, numbers, mean, design.data, design.indices, mask):
        array[:] = 0
    labels.clear()
    found = svmp.fit(model, svmp.FullVB())
    np.testing.assert_array_equal(found.mean("u"), expected.mean("u"))
    assert found.bound == expected.bound
    assert model.labels["user"] == ["a", "b", "c"]


def test_equal_keys_share_one_copy() -> None:
    key = np.arange(3)
    with svmp.Model(coords={"user": 3}):
        u, b = (svmp.Normal(name, mu=0, tau=1, dims="user") for name in "ub")
        first, second = (v[key].terms[0].operands[0].index[0].values for v in (u, b))
        key[0] = 2
        third = u[key].terms[0].operands[0].index[0].values
    assert first is second
    assert first is not key
    assert (first[0], third[0]) == (0, 2)


def test_booleans_are_zeros_and_ones() -> None:
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Bernoulli("x", p=p, observed=np.array([True, False, True]))
    q = svmp.fit(model, svmp.FullVB())["p"]
    assert (q.alpha, q.beta) == (3, 2)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u8", "i4", "f2", "f4"])
def test_small_types_do_not_overflow(dtype: str) -> None:
    with svmp.Model(coords={"a": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="a")
        key = np.array([1, 1, 1], dtype=dtype if dtype[0] in "ui" else "i8")
        svmp.Normal("r", mu=u[key], tau=1, observed=np.array([100, 100, 100], dtype=dtype))
    np.testing.assert_allclose(svmp.fit(model, svmp.FullVB()).mean("u"), [0, 75])


def test_missing_values_may_be_anything() -> None:
    with svmp.Model() as model:
        g = svmp.Gamma("g", alpha=1, beta=1)
        svmp.Poisson("x", mu=g, observed=[2, -99, 0.5], missing=[False, True, True])
    q = svmp.fit(model, svmp.FullVB())["g"]
    assert (q.alpha, q.beta) == (3, 2)


def test_a_plate_without_children_keeps_its_prior() -> None:
    with svmp.Model(coords={"a": 3}) as model:
        u = svmp.Normal("u", mu=[1, 2, 3], tau=[1, 2, 4], dims="a")
        svmp.Normal("lonely", mu=5, tau=2, dims="a")
        svmp.Gamma("unused", alpha=3, beta=4)
        svmp.Normal("x", mu=u[[0, 0]], tau=1, observed=[1.0, 1.0])
    fit = svmp.fit(model, svmp.FullVB())
    np.testing.assert_allclose(fit["u"].mu, [1, 2, 3])
    np.testing.assert_allclose(fit["u"].tau, [3, 2, 4])
    np.testing.assert_allclose(fit["lonely"].mu, [5, 5, 5])
    np.testing.assert_allclose((fit["unused"].alpha, fit["unused"].beta), (3, 4))
    assert fit.bound_terms["lonely"] == pytest.approx(0, abs=1e-12)
    assert fit.bound_terms["unused"] == pytest.approx(0, abs=1e-12)


def test_a_dimension_of_size_zero() -> None:
    with svmp.Model(coords={"none": 0}) as model:
        empty = svmp.Normal("empty", mu=0, tau=1, dims="none")
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("x", mu=mu + empty.sum("none"), tau=1, observed=[1.0, 2.0])
    fit = svmp.fit(model, svmp.FullVB())
    assert fit.status == "converged"
    assert fit.mean("mu") == pytest.approx(1.0)
    assert fit.mean("empty").shape == (0,)


def test_a_hidden_table_of_size_zero() -> None:
    none = np.zeros(0, dtype=int)
    with svmp.Model(coords={"none": 0, "a": 2}) as model:
        s = svmp.Normal("s", mu=0, tau=1, dims="a")
        svmp.Normal("gap", mu=s[none] - s[none], tau=1, dims="none")
        svmp.Normal("x", mu=s, tau=1, dims="a", observed=[1.0, 2.0])
    fit = svmp.fit(model, svmp.FullVB())
    np.testing.assert_allclose(fit.mean("s"), [0.5, 1.0])


def test_one_row_and_one_element() -> None:
    with svmp.Model(coords={"a": 1}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="a")
        svmp.Normal("x", mu=u[[0]], tau=1, observed=[2.0])
    assert svmp.fit(model, svmp.FullVB()).mean("u") == pytest.approx([1.0])


def test_one_observed_number() -> None:
    with svmp.Model() as model:
        u = svmp.Normal("u", mu=0, tau=1)
        svmp.Normal("x", mu=u, tau=1, observed=2.0)
    fit = svmp.fit(model, svmp.FullVB())
    assert fit.mean("u").shape == ()
    assert fit.mean("u") == 1


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e90])  # observed values may be up to 1e100
def test_large_and_small_numbers(scale: float) -> None:
    """Scaling the data scales the posterior, and shifts the bound by the log of the scale."""
    x = np.array([0.5, 1.5, 2.5])
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1 / scale**2)
        svmp.Normal("x", mu=mu, tau=2 / scale**2, observed=x * scale)
    fit = svmp.fit(model, svmp.FullVB())
    assert fit.mean("mu") == pytest.approx(9 / 7 * scale, rel=1e-12)
    with svmp.Model() as plain:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("x", mu=mu, tau=2, observed=x)
    shift = 3 * np.log(scale)
    assert fit.bound + shift == pytest.approx(svmp.fit(plain, svmp.FullVB()).bound, rel=1e-9)
