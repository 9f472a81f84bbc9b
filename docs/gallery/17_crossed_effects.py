"""Crossed random effects: how do readers and words differ, if every reader reads many words?

    centre ~ Normal(0, 1e-6)                    rare ~ Normal(0, 1e-4)
    reader_i ~ Normal(0, tau_reader)            word_j ~ Normal(0, tau_word)
    time_n ~ Normal(centre + rare x_j + reader_i + word_j, tau_noise)

Readers and words are crossed: neither is nested in the other, and a table with two keys says
which reader read which word. x_j says how rare word j is.

See: the three standard deviations come back, and the slow readers are told apart from the hard
words, though most pairs were never seen. The fit solves all means together, as one block.
"""

import numpy as np
from _style import BLUE, GREEN, GREY, figure, save, target

import svmp

TRUTH = {"reader": 60.0, "word": 30.0, "noise": 80.0}
"""Standard deviations of the draw, in milliseconds."""
EFFECTS = ("centre", "rare", "reader", "word")


def data(readers=50, words=80, rows=1500):
    """Return reading times with their reader and word, how rare each word is, and the effects."""
    rng = np.random.default_rng(3)
    effect = {"reader": TRUTH["reader"] * rng.normal(size=readers)}
    effect["word"] = TRUTH["word"] * rng.normal(size=words)
    x = rng.normal(size=words)
    reader, word = rng.integers(0, readers, rows), rng.integers(0, words, rows)
    time = 400 + 25 * x[word] + effect["reader"][reader] + effect["word"][word]
    return time + TRUTH["noise"] * rng.normal(size=rows), reader, word, x, effect


def model(time, reader, word, x, readers, tau=None):
    """Declare the network; `tau` fixes the precisions instead of learning them."""
    with svmp.Model(coords={"reader": readers, "word": len(x)}) as network:
        if tau is None:
            tau = {name: svmp.Gamma(f"tau_{name}", alpha=1, beta=100) for name in TRUTH}
        centre = svmp.Normal("centre", mu=0, tau=1e-6)
        rare = svmp.Normal("rare", mu=0, tau=1e-4)
        of_reader = svmp.Normal("reader", mu=0, tau=tau["reader"], dims="reader")
        of_word = svmp.Normal("word", mu=0, tau=tau["word"], dims="word")
        mu = centre + rare * x[word] + of_reader[reader] + of_word[word]
        svmp.Normal("time", mu=mu, tau=tau["noise"], observed=time)
    return network


def main(path):
    time, reader, word, x, effect = data()
    fit = svmp.fit(model(time, reader, word, x, readers=50))
    print(f"{len(time)} of {50 * 80} pairs seen; {fit.status}, bound {fit.bound:.2f}")
    for name, sd in TRUTH.items():
        print(f"sd of {name:7} {1 / np.sqrt(fit.mean(f'tau_{name}')):6.1f}   (drawn with {sd})")
    print(f"a rare word costs {fit.mean('rare'):.1f} ± {fit['rare'].std:.1f} ms (drawn with 25)")
    plot(path, fit, effect)


def plot(path, fit, effect):
    fig, axes = figure(1, 2, (9.5, 4.2))
    for ax, name, colour in zip(axes, ("reader", "word"), (BLUE, GREEN), strict=True):
        q = fit[name]
        ends = np.array([effect[name].min(), effect[name].max()]) * 1.1
        ax.plot(ends, ends, color=GREY, ls=":")
        ax.errorbar(effect[name], q.mean, 2 * q.std, fmt="o", ms=3.5, lw=0.8, color=colour)
        ax.set(xlabel="truth, ms", ylabel="posterior mean ± 2 sd, ms")
        ax.set_title(f"{len(effect[name])} {name}s")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
