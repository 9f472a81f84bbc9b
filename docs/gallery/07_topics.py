"""Latent Dirichlet allocation: topics in the State of the Union addresses, 1790 to today.

    theta_d ~ Dirichlet(0.2, ...)      share of each topic in document d
    phi_k   ~ Dirichlet(0.1, ...)      share of each word in topic k
    z_t ~ Categorical(theta_d(t))      w_t ~ Categorical(phi_z(t))      for every token t

A topic model is a mixture of Categoricals whose weights belong to the document: the tokens are
the rows of a table, with a document as foreign key and a word as value.

See: the model does not know the years, but the topics rise and fall with them.
"""

import numpy as np
from _style import COLOURS, SHARED, figure, save, target

import svmp

TOPICS = 6


def data(words=400, length=150):
    """Return the document and the word of every token, the documents' years and the vocabulary.

    A document is 150 tokens of an address; the vocabulary is frequent words that occur in bursts.
    """
    folder = SHARED / "sotu"
    if not folder.exists():
        return stand_in(240, words, length)
    bow = np.load(folder / "bow.npz")
    vocabulary = np.array((folder / "vocab.txt").read_text().split())
    total = np.bincount(bow["indices"], bow["counts"])
    bursts = total / np.bincount(bow["indices"])
    frequent = np.argsort(-total)[:1000]
    kept = np.sort(frequent[np.argsort(-bursts[frequent])[:words]])
    addresses, address = np.unique(bow["labels"], return_inverse=True)
    document = np.repeat(address, np.diff(bow["indptr"]))
    here = np.isin(bow["indices"], kept)
    document, word = (np.repeat(x[here], bow["counts"][here]) for x in (document, bow["indices"]))
    rng = np.random.default_rng(17)
    rows = [np.flatnonzero(document == d) for d in range(len(addresses))]
    rows = np.concatenate([rng.choice(r, min(length, len(r)), replace=False) for r in rows])
    year = np.array([int(label[:4]) for label in addresses])
    return document[rows], np.searchsorted(kept, word[rows]), year, vocabulary[kept]


def stand_in(documents, words, length):
    """Generate documents from topics that follow each other over the years."""
    rng = np.random.default_rng(13)
    year = np.linspace(1790, 2020, documents).astype(int)
    centre = np.linspace(1790, 2020, TOPICS)
    theta = np.exp(-(((year[:, None] - centre) / 40) ** 2)) + 0.02
    phi = rng.dirichlet(np.full(words, 0.05), TOPICS)
    document = np.repeat(np.arange(documents), length)
    shares = (theta / theta.sum(1, keepdims=True)) @ phi
    word = np.concatenate([rng.choice(words, length, p=p / p.sum()) for p in shares])
    return document, word, year, np.array([f"word{i}" for i in range(words)])


def model(document, word, documents, words, topics=TOPICS):
    coords = {"document": documents, "topic": topics, "word": words, "token": len(word)}
    with svmp.Model(coords=coords) as network:
        theta = svmp.Dirichlet("theta", a=0.2, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return network


def top_words(fit, vocabulary, count=7):
    """Return the words that distinguish each topic: those with large phi log(phi / mean phi)."""
    phi = fit.mean("phi")
    score = phi * np.log(phi / phi.mean(0))
    return [vocabulary[np.argsort(-row)[:count]].tolist() for row in score]


def main(path):
    document, word, year, vocabulary = data()
    network = model(document, word, len(year), len(vocabulary))
    fit = svmp.fit(network, svmp.FullVB(), max_sweeps=40, tol=1e-5)
    print(f"{len(word):,} tokens, {len(year)} documents, {len(vocabulary)} words")
    print(f"{fit.status} after {len(fit.trace)} sweeps, bound {fit.bound:,.1f}")
    for words in top_words(fit, vocabulary):
        print("  ", " ".join(words))
    plot(path, fit, year, vocabulary)


def plot(path, fit, year, vocabulary):
    fig, axes = figure(2, 3, (10.5, 4.8), sharex=True, sharey=True)
    theta, grid = fit.mean("theta"), np.arange(year.min(), year.max() + 1)
    near = np.exp(-0.5 * ((grid[:, None] - year) / 7) ** 2)
    share = near @ theta / near.sum(1, keepdims=True)
    order = np.argsort(share.argmax(0))
    words = top_words(fit, vocabulary, 6)
    for ax, k, colour in zip(axes.flat, order, COLOURS, strict=False):
        ax.plot(year, theta[:, k], ".", ms=2.5, color=colour, alpha=0.35)
        ax.fill_between(grid, share[:, k], color=colour, alpha=0.3, lw=0)
        ax.plot(grid, share[:, k], color=colour)
        ax.set_title(f"{', '.join(words[k][:3])},\n{', '.join(words[k][3:])}", fontsize=9.5)
        ax.set(ylim=(0, 1), xlim=(grid[0], grid[-1]))
    for ax in axes[:, 0]:
        ax.set_ylabel("share of the topic")
    for ax in axes[1]:
        ax.set_xlabel("year of the address")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
