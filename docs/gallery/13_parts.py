"""Rows in parts: the topics of the State of the Union addresses, a quarter-century in each part.

    theta_d ~ Dirichlet(0.2, ...)      own to the part that has document d
    phi_k   ~ Dirichlet(0.1, ...)      shared by all parts
    z_t ~ Categorical(theta_d(t))      w_t ~ Categorical(phi_z(t))      for every token t

A function declares the network for the tokens of one part. Full VB visits all parts, adds up their
sums and updates the topics; Memoized updates the topics after each part, from sums that it keeps.

See: over parts full VB has the bounds of the undivided table. Memoized makes up to ten passes over
a part each time that it is read: it needs a tenth of the readings, which matters where parts are
files. In accesses, which count every pass, it is behind at first and even at the end.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, SHARED, figure, save, target

import svmp

TOPICS, WORDS = 6, 400
SWEEPS = 100
"""Accesses of each fit, in sweeps of full VB."""
ORDER = ("z", "theta", "phi")


def data(length=150):
    """Return the tokens of each part: the years of their addresses, and their words."""
    year, word = tokens(length) if (SHARED / "sotu").exists() else stand_in(length)
    period = (year - 1790) // 25
    return [{"year": year[period == p], "word": word[period == p]} for p in np.unique(period)]


def tokens(length):
    """Draw tokens of each year's addresses, from frequent words that occur in bursts."""
    bow = np.load(SHARED / "sotu" / "bow.npz")
    total = np.bincount(bow["indices"], bow["counts"])
    frequent = np.argsort(-total)[:1000]
    bursts = total[frequent] / np.bincount(bow["indices"])[frequent]
    kept = np.sort(frequent[np.argsort(-bursts)[:WORDS]])
    year = np.array([int(label[:4]) for label in bow["labels"]])
    year, here = np.repeat(year, np.diff(bow["indptr"])), np.isin(bow["indices"], kept)
    year, word = (np.repeat(x[here], bow["counts"][here]) for x in (year, bow["indices"]))
    rng = np.random.default_rng(17)
    rows = [np.flatnonzero(year == y) for y in np.unique(year)]
    rows = np.concatenate([rng.choice(r, min(length, len(r)), replace=False) for r in rows])
    return year[rows], np.searchsorted(kept, word[rows])


def stand_in(length):
    """Generate tokens from topics that follow each other over the years."""
    rng = np.random.default_rng(13)
    year = np.arange(1790, 2020)
    theta = np.exp(-(((year[:, None] - np.linspace(1790, 2020, TOPICS)) / 40) ** 2)) + 0.02
    shares = (theta / theta.sum(1, keepdims=True)) @ rng.dirichlet(np.full(WORDS, 0.05), TOPICS)
    word = np.concatenate([rng.choice(WORDS, length, p=p / p.sum()) for p in shares])
    return np.repeat(year, length), word


def model(part):
    """Declare the network of one part; its documents are the years."""
    years, document = np.unique(part["year"], return_inverse=True)
    coords = {"document": years, "topic": TOPICS, "word": WORDS, "token": len(document)}
    with svmp.Model(coords=coords) as network:
        theta = svmp.Dirichlet("theta", a=0.2, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=part["word"])
    return network


def joined(parts):
    """Return all tokens as one table."""
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def start(parts):
    """Return where every fit starts."""
    years = len(np.unique(joined(parts)["year"]))
    phi = 0.1 + np.random.default_rng(0).gamma(1.0, 1.0, (TOPICS, WORDS))
    return {"phi": {"a": phi}, "theta": {"a": np.ones((years, TOPICS))}}


def fits(parts):
    """Fit the undivided table, and the parts in two ways."""
    init, full, rows = start(parts), svmp.FullVB(order=ORDER), svmp.Parts(model, parts)
    options = {"init": init, "tol": 0, "max_sweeps": SWEEPS}
    return {
        "one table, full VB": svmp.fit(model(joined(parts)), full, **options),
        "parts, full VB": svmp.fit(rows, full, **options),
        "parts, Memoized": svmp.fit(rows, svmp.Memoized(), **options),
    }


def main(path):
    parts = data()
    found = fits(parts)
    print(len(parts), "parts of", ", ".join(f"{len(part['word']):,}" for part in parts), "tokens")
    for name, fit in found.items():
        print(f"{name:20} bound {fit.bound:,.1f} after {readings(fit, parts)[-1]:.0f} readings")
    plot(path, found, parts)


def readings(fit, parts):
    """Return how often all parts were read, at each bound; Memoized reads one in an iteration."""
    each = len(parts) if fit.program.method == "Memoized" else 1
    return fit.trace["iteration"] / each


def plot(path, found, parts):
    fig, (left, right) = figure(1, 2, (10.5, 4.2), sharey=True)
    styles = {"color": GREY, "lw": 5, "alpha": 0.6}, {"color": BLUE}, {"color": ORANGE}
    sweep = found["one table, full VB"].accesses / SWEEPS
    for (name, fit), style in zip(found.items(), styles, strict=True):
        bound = fit.trace["bound"] / 1000
        left.plot(readings(fit, parts), bound, label=name, **style)
        right.plot(fit.trace["accesses"] / sweep, bound, **style)
    left.set(xlabel="readings of all parts", ylabel="bound, in 1,000 nats", xscale="log")
    right.set(xlabel="accesses, in sweeps of full VB", xscale="log")
    left.legend(loc="lower right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
