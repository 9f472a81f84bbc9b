"""Which Categoricals the loops of topics serve, and what they count for them.

A plan holds for z_t ~ Categorical(theta[d]) that chooses the probabilities of an observed
Categorical, w_t ~ Categorical(phi_z), the same phi for all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from svmp.families.family import Array
from svmp.kernels.categorical import topics
from svmp.kernels.categorical.documents import Optimised, optimise_documents
from svmp.kernels.categorical.topics import Exponentials, Small
from svmp.kernels.categorical.updater import ImplicitCategorical, blocks
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, ragged
from svmp.network.grouping import Grouping
from svmp.network.lookup import Lookup
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Fixed, Single, Slot


class Bag(NamedTuple):
    """Some tokens as pairs of a document and a word, by document and by word.

    Attributes
    ----------
    documents, words
        The elements of theta and the categories that occur.
    starts, word, times
        Where each document's pairs begin; of each pair, the place of its word and how often.
    word_starts, pair, document
        Where each word's pairs begin; which they are; of each pair, the place of its document.
    """

    documents: Ints
    words: Ints
    starts: Ints
    word: Small
    times: Array
    word_starts: Ints
    pair: Small
    document: Small

    @classmethod
    def of(cls, document: Ints, word: Ints, categories: int) -> Bag:
        """Collect tokens."""
        pairs, times = np.unique(document * categories + word, return_counts=True)
        document, word = np.divmod(pairs, categories)
        starts = np.flatnonzero(np.diff(document, prepend=-1))
        starts = np.append(starts, len(pairs))
        return cls._of(document[starts[:-1]], starts, word, times.astype(np.float64))

    @classmethod
    def _of(cls, documents: Ints, starts: Ints, word: Ints, times: Array) -> Bag:
        """Sort pairs that are by document also by word."""
        occurs = np.bincount(word) > 0
        words, place = np.flatnonzero(occurs), np.cumsum(occurs, dtype=np.int32)[word] - 1
        document = np.repeat(np.arange(len(documents), dtype=np.int32), np.diff(starts))
        number = np.arange(len(word), dtype=np.int32)
        by_word = sparse.csc_array((number, place, starts), shape=(len(words), len(documents)))
        by_word = by_word.tocsr()
        ends = by_word.indptr.astype(np.int64)
        return cls(documents, words, starts, place, times, ends, by_word.data, document)

    def part(self, documents: Ints) -> Bag:
        """Return the pairs of some documents, those that have any."""
        if np.array_equal(documents, self.documents):
            return self
        place = np.searchsorted(self.documents, documents)
        place = place[place < len(self.documents)]
        place = place[np.isin(self.documents[place], documents, assume_unique=True)]
        sizes = self.starts[place + 1] - self.starts[place]
        _, pairs = ragged(self.starts[place], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Bag._of(
            self.documents[place], starts, self.words[self.word[pairs]], self.times[pairs]
        )


class TopicSums(NamedTuple):
    """What some tokens say: to theta by document, to phi by word, and the sum of log s.

    Of documents that were brought to rest, only what they say to phi.
    """

    bag: Bag
    to_theta: Array
    to_phi: Array
    evidence: float


@dataclass(frozen=True, eq=False)
class Topics(ImplicitCategorical):
    """A Categorical that the loops serve."""

    @classmethod
    def of(cls, network: Network, name: str) -> Topics | None:
        """Return the plan for a hidden variable, or None where the loops do not serve it."""
        z, edges = network.hidden[name], network.edges[name]
        if isinstance(z.family, PartlyKnown):
            return None
        if name not in network.locals or len(edges) != 1 or not edges[0].choosing:
            return None
        words = edges[0].conditional
        if not isinstance(words, Lookup) or z.conditional.selector is not None:
            return None
        weights, topics = z.conditional.slots["p"], words.slots["p"]
        served = is_shared(weights) or isinstance(weights, Single)
        if not served or not is_by_component(topics, words.component_axis, words.components):
            return None
        return cls(z, tuple(edges))

    @property
    def _words(self) -> Lookup:
        (edge,) = self.edges
        assert isinstance(edge.conditional, Lookup)
        return edge.conditional

    @cached_property
    def _document(self) -> Ints:
        """The element of theta of every token."""
        slot, tokens = self.variable.conditional.slots["p"], np.arange(self.variable.size)
        return slot.reader.element(tokens, tokens) if isinstance(slot, Single) else 0 * tokens

    @cached_property
    def _word(self) -> Ints:
        """The word of every token, -1 where it is missing."""
        table = self._words.variable
        assert table.observed is not None
        word = np.full(self.variable.size, -1)
        token, row = self.edges[0].pairs_in(table.rows)
        word[token] = table.observed[row]
        return word

    def _bag(self, tokens: Ints) -> Bag:
        """Collect those of some tokens whose words are not missing."""
        tokens = tokens[self._word[tokens] >= 0]
        return Bag.of(self._document[tokens], self._word[tokens], self._words.family.size)

    @cached_property
    def _everything(self) -> Bag:
        return self._bag(np.arange(self.variable.size))

    def serves(self, network: Network, name: str) -> bool:
        """Return whether a variable is phi, with no other children than the words."""
        slot = self._words.slots["p"]
        if not isinstance(slot, Single) or slot.reader.variable.name != name:
            return False
        return len(network.edges[name]) == 1 and slot.reader.variable.size == len(self.topics)

    @cached_property
    def topics(self) -> Ints:
        """The element of phi of each topic."""
        return component_elements(self._words.slots["p"], self._words.components)

    def _log_theta(self, q: Beliefs, documents: Ints) -> Array:
        slot = self.variable.conditional.slots["p"]
        if isinstance(slot, Single):
            return q.moments[slot.reader.variable.name][documents]
        return slot.moments(q, np.zeros(len(documents), dtype=np.int64))

    def _table(self, q: Beliefs, words: Ints) -> Exponentials:
        slot = self._words.slots["p"]
        if isinstance(slot, Single):
            moments, elements = q.moments[slot.reader.variable.name], self.topics
        else:
            elements = np.arange(self._words.components)
            moments = slot.moments(q, elements)
        shape = (len(words), len(elements))
        table = Exponentials(np.empty(shape), np.empty(shape), np.empty(len(words)))
        with threads_for(table.logs.size):
            share(topics.by_word, moments, elements, words, *table)
        return table

    def sums(self, q: Beliefs, elements: Ints | None) -> TopicSums:
        return self.count_pairs(q, self._everything if elements is None else self._bag(elements))

    def count_pairs(self, q: Beliefs, bag: Bag) -> TopicSums:
        """Return what some pairs say."""
        log_theta, phi = self._log_theta(q, bag.documents), self._table(q, bag.words)
        theta, top = np.empty_like(log_theta), np.empty(len(log_theta))
        weight, evidence = np.empty(len(bag.times)), np.empty(len(theta))
        to_theta = np.empty_like(theta)
        with threads_for(len(weight) * theta.shape[1]):
            share(topics.exponentials, log_theta, theta, top)
            share(
                topics.read_documents,
                topics.DocumentPairs(blocks(bag.starts), bag.starts, bag.word, bag.times),
                Exponentials(log_theta, theta, top), phi, weight, to_theta, evidence,
            )  # fmt: skip
        to_phi = self._to_phi(bag, log_theta, theta, phi, weight)
        return TopicSums(bag, to_theta, to_phi, float(evidence.sum()))

    def _to_phi(
        self, bag: Bag, log_theta: Array, theta: Array, phi: Exponentials, weight: Array
    ) -> Array:
        to_phi = np.empty_like(phi.logs)
        with threads_for(len(weight) * theta.shape[1]):
            share(
                topics.read_words,
                topics.WordPairs(
                    blocks(bag.word_starts), bag.word_starts, bag.pair, bag.document, bag.times
                ),
                log_theta, theta, phi, weight, to_phi,
            )  # fmt: skip
        return to_phi

    @property
    def weights(self) -> Symbol | None:
        """The Dirichlet that the topics of the tokens are drawn from."""
        (weights,) = self.variable.conditional.parents() or (None,)
        return weights

    def divides(self, grouping: Grouping) -> bool:
        """Return whether a group has one theta and its tokens, or tokens alone."""
        own = [self.variable.name]
        weights = self.weights
        if weights is not None and weights.name in grouping.group:
            own.append(weights.name)
            groups = grouping.group[weights.name]
            if len(np.unique(groups)) < len(groups) or len(grouping.edges[own[1]]) > 1:
                return False
        return sorted(grouping.locals) == sorted(own)

    def pairs_of(self, documents: Ints) -> Bag:
        """Return the pairs of some documents."""
        return self._everything.part(documents)

    def optimise(
        self, q: Beliefs, documents: Ints, bag: Bag, prior: Array, rest: float, most: int
    ) -> tuple[Array, TopicSums, int]:
        """Optimise theta of some documents for the current phi, from where it is.

        `bag` has their pairs. Return the natural parameters of theta, what the tokens then say to
        phi, and the rows read.
        """
        assert self.weights is not None
        natural = np.array(prior)
        here = np.searchsorted(documents, bag.documents)
        a = q.natural[self.weights.name][bag.documents] + 1
        phi, theta, weight = self._table(q, bag.words), np.empty_like(a), np.empty(len(bag.times))
        passes = np.zeros(len(bag.documents), dtype=np.int64)
        with threads_for(most * len(weight) * a.shape[1]):
            share(
                optimise_documents,
                topics.DocumentPairs(blocks(bag.starts), bag.starts, bag.word, bag.times),
                prior[here] + 1, a, phi, rest, most, Optimised(passes, theta, weight),
            )  # fmt: skip
        natural[here] = a - 1
        to_phi = self._to_phi(bag, self.weights.family.moments(a - 1), theta, phi, weight)
        return natural, TopicSums(bag, np.zeros((0, 0)), to_phi, np.nan), self._reading(bag, passes)

    def _reading(self, bag: Bag, passes: Ints) -> int:
        """Return how many rows so many passes read: tokens for theta, and words for the tokens."""
        return int(passes @ np.bincount(bag.document, 2 * bag.times, len(passes)))

    def message(self, q: Beliefs, sums: TopicSums, edge: Edge, elements: Ints) -> Array:
        out = np.zeros((len(elements), edge.parent.family.size))
        if edge.conditional is self.variable.conditional:
            documents = sums.bag.documents
            place, here = np.searchsorted(documents, elements), np.isin(elements, documents)
            out[here] = sums.to_theta[place[here]]
        else:
            topic = np.full(edge.parent.size, -1)
            topic[self.topics] = np.arange(len(self.topics))
            found = np.flatnonzero(topic[elements] >= 0)
            out[found[:, None], sums.bag.words] = sums.to_phi.T[topic[elements[found]]]
        return out

    def update(
        self, q: Beliefs, sums: TopicSums, prior: Array, rho: Array, scale: Array, at_once: bool
    ) -> Array:
        """Move phi towards what was counted; return the naturals, which are q's if seen at once."""
        slot = self._words.slots["p"]
        assert isinstance(slot, Single)
        name = slot.reader.variable.name
        natural, moments = q.natural[name], q.moments[name]
        if not at_once:
            natural, moments = natural.copy(), np.empty_like(moments)
        place = np.full(self._words.family.size, -1, dtype=np.int32)
        place[sums.bag.words] = np.arange(len(sums.bag.words))
        with threads_for(natural.size):
            step = topics.TopicStep(self.topics, place, sums.to_phi, scale, rho, prior)
            topics.update_topics(step, natural, moments)
        return natural

    def reads(self, sums: TopicSums, edge: Edge, elements: Ints) -> int:
        if edge.conditional is self.variable.conditional:
            here = np.isin(sums.bag.documents[sums.bag.document], elements)
            return int(sums.bag.times[here].sum())
        return int(sums.bag.times.sum()) * len(elements)

    def bound_terms(self, q: Beliefs, sums: TopicSums) -> dict[str, float]:
        logs = self._table(q, sums.bag.words).logs
        likelihood = float(np.einsum("wk,wk->", sums.to_phi, logs))  # BLAS starts threads for it
        own, table = self.tables
        return {own: sums.evidence - likelihood, table: likelihood}


def is_shared(slot: Slot) -> bool:
    """Return whether a parameter is known and the same for all rows."""
    return isinstance(slot, Fixed) and not slot.varies and is_finite(slot)


def is_finite(slot: Fixed) -> bool:
    """Return whether no probability is 0."""
    return bool(np.isfinite(slot.statistics.values).all())


def is_by_component(slot: Slot, axis: str | None, components: int) -> bool:
    """Return whether a parameter depends on the component alone, on another element for each."""
    if isinstance(slot, Fixed):
        return slot.statistics.axes == (axis,) and is_finite(slot)
    if not isinstance(slot, Single) or slot.reader.labels != {axis}:
        return False
    return len(np.unique(component_elements(slot, components))) == components


def component_elements(slot: Slot, components: int) -> Ints:
    """Return the element that each component reads at a row, and so at all."""
    numbers = np.arange(components)
    return slot.reader.element(numbers, numbers) if isinstance(slot, Single) else numbers
