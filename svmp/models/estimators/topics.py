"""Topics of documents, by latent Dirichlet allocation.

phi_k and theta_d are Dirichlets, z_n ~ Categorical(theta_d(n)) and w_n ~ Categorical(phi_z(n)) for
every word n of document d(n).
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import psi
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.estimator import NetworkEstimator
from svmp.network.distributions import Categorical, Dirichlet, Mixture
from svmp.network.model import Model

PASSES = 200
"""Most passes over the topic shares of new documents."""


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NetworkEstimator):
    """Latent Dirichlet allocation of counts of words.

    Parameters
    ----------
    n_components
        Number of topics.
    doc_topic_prior, topic_word_prior
        Parameters of the Dirichlet priors; by default 1 / n_components.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start.

    Attributes
    ----------
    components_
        Parameters of q of the topics: expected numbers of words, and the prior.
    fit_
        The `svmp.Fit`, with `phi`, `theta` and `z`.

    >>> import numpy as np
    >>> from svmp.models import TopicModel
    >>> counts = np.array([[5, 3, 0, 0], [4, 6, 0, 0], [0, 0, 7, 2], [0, 0, 3, 6]])
    >>> shares = TopicModel(n_components=2).fit_transform(counts)
    >>> shares[:2].argmax(axis=1)[0] != shares[2:].argmax(axis=1)[0]
    np.True_
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | None = None,
        topic_word_prior: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior, self.topic_word_prior = doc_topic_prior, topic_word_prior
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    @property
    def _priors(self) -> tuple[float, float]:
        default = 1 / self.n_components
        given = (self.doc_topic_prior, self.topic_word_prior)
        return tuple(default if p is None else p for p in given)  # type: ignore[return-value]

    def declare(self, counts: Any) -> Model:
        """Declare the network of a sparse matrix with a row of counts for each document."""
        table = counts.tocoo()
        times = table.data.astype(np.int64)
        document, word = np.repeat(table.row, times), np.repeat(table.col, times)
        alpha, eta = self._priors
        documents, words = counts.shape
        sizes = {"document": documents, "word": self._features(words)}
        with Model(coords={**sizes, "topic": self.n_components, "token": len(word)}) as model:
            theta = Dirichlet("theta", a=alpha, dims=("document", "topic"))
            phi = Dirichlet("phi", a=eta, dims=("topic", "word"))
            z = Categorical("z", p=theta[document], dims="token")
            Mixture("w", z, Categorical.dist(p=phi), dims="token", observed=word)
        return model

    def _counts(self, X: Any, reset: bool = False) -> Any:
        """Return a sparse matrix of counts, or refuse what is none."""
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        counts = sparse.csr_array(X)
        counts.eliminate_zeros()
        if (counts.data < 0).any():
            raise ValueError("Negative values in data passed to TopicModel: counts are 0 or more")
        whole = np.rint(counts.data)
        if (counts.data != whole).any():
            warnings.warn(
                "TopicModel rounds X to whole numbers, as it needs counts of words; give it counts "
                "and not weights, as those of tf-idf",
                UserWarning,
                stacklevel=3,
            )
            counts.data = whole
            counts.eliminate_zeros()
        if reset and not counts.nnz:
            raise ValueError("TopicModel needs at least one word, and all counts are 0")
        return counts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the network to counts of words, a row for each document; y is ignored."""
        self._check_parameters()
        return self._after(self._learn(self.declare(self._counts(X, reset=True)), FullVB()))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the topics with new documents; y is ignored."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        counts = self._counts(X)
        if not counts.nnz:
            return self
        return self._after(self._learn_more(self.declare(counts), FullVB(), new=("document",)))

    def _after(self, fitted: Self) -> Self:
        self.components_ = self.fit_["phi"].a
        self._n_features_out = self.n_components
        return fitted

    def transform(self, X: Any) -> Array:
        """Return the expected share of each topic in each document."""
        check_is_fitted(self)
        shares = self._shares(self._counts(X))
        return shares / shares.sum(axis=1, keepdims=True)

    def _shares(self, counts: Any) -> Array:
        """Return the parameters of q(theta) of documents, given q of the topics."""
        topics = np.exp(psi(self.components_) - psi(self.components_.sum(axis=1, keepdims=True)))
        alpha, _ = self._priors
        table = counts.tocoo()
        words = topics[:, table.col].T
        total = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
        shares = alpha + np.repeat(total / self.n_components, self.n_components, axis=1)
        for _ in range(PASSES):
            weight = np.exp(psi(shares) - psi(shares.sum(axis=1, keepdims=True)))
            each = weight[table.row] * words
            each *= (table.data / each.sum(axis=1))[:, None]
            new = np.full_like(shares, alpha)
            np.add.at(new, table.row, each)
            moved = float(np.abs(new - shares).max(initial=0.0))
            shares = new
            if moved < 1e-3 * max(1.0, float(total.max(initial=1.0))) * self.tol:
                break
        return shares

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log probability of all words, at the expected topics and shares."""
        check_is_fitted(self)
        counts = self._counts(X)
        table, shares = counts.tocoo(), self._shares(counts)
        shares = shares / shares.sum(axis=1, keepdims=True)
        phi = self.components_ / self.components_.sum(axis=1, keepdims=True)
        chance = np.einsum("nk,kn->n", shares[table.row], phi[:, table.col])
        return float(table.data @ np.log(chance))

    def perplexity(self, X: Any) -> float:
        """Return exp of minus the mean log probability of a word."""
        total = float(self._counts(X).sum())
        return float(np.exp(-self.score(X) / max(total, 1.0)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
