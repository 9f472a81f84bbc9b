"""Streaming: counts arrive in batches, and their rate changes twice.

    rate    ~ Gamma(2, 1/2)
    count_n ~ Poisson(rate)

What was learned from earlier batches is the prior of the next, and no batch is read twice. Three
fits: one keeps everything, one forgets half at each batch, one learns how much to forget.

See: where nothing changes, nothing is forgotten, and the rate becomes as certain as if all counts
had been read together; where the rate jumps, the fit that learns to forget starts anew.
"""

import numpy as np
from _style import BLUE, GREY, INK, ORANGE, figure, save, target

import svmp

RATES = np.repeat([6.0, 11.0, 3.0], [14, 10, 12])
"""The rate of each batch."""
FITS = {"forget nothing": 0.0, "forget half": 0.5, 'forget="learn"': "learn"}
COLOURS = dict(zip(FITS, (GREY, ORANGE, BLUE), strict=True))


def data(rows=20):
    """Return the counts of each batch."""
    return np.random.default_rng(4).poisson(RATES[:, None], (len(RATES), rows))


def model(counts):
    """Declare the network of one batch."""
    with svmp.Model() as network:
        rate = svmp.Gamma("rate", alpha=2, beta=0.5)
        svmp.Poisson("count", mu=rate, observed=counts)
    return network


def stream(batches, forget):
    """Return the fit after each batch."""
    fits = [svmp.fit(model(batches[0]))]
    for batch in batches[1:]:
        fits.append(fits[-1].update(model(batch), forget=forget))
    return fits


def main(path):
    batches = data()
    fits = {name: stream(batches, forget) for name, forget in FITS.items()}
    print(f"{len(batches)} batches of {batches.shape[1]} counts, rates 6, then 11, then 3")
    for name, found in fits.items():
        error = np.sqrt(
            np.mean([(fit.mean("rate") - r) ** 2 for fit, r in zip(found, RATES, strict=True)])
        )
        evidence = sum(fit.bound for fit in found)
        print(f"{name:15} error of the rate {error:.2f}, log p(all batches) {evidence:.1f}")
    forgotten = [fit.forgetting.get("rate", 0.0) for fit in fits['forget="learn"']]
    print("a change is found at batches", np.flatnonzero(np.array(forgotten) > 0.5).tolist())
    plot(path, batches, fits, forgotten)


def plot(path, batches, fits, forgotten):
    heights = {"height_ratios": (4, 1)}
    fig, (ax, bars) = figure(2, 1, (9.5, 5.4), sharex=True, gridspec_kw=heights)
    place = np.arange(len(batches))
    ax.plot(place, batches.mean(axis=1), ".", color=INK, ms=4, label="mean of a batch")
    ax.step(place, RATES, where="mid", color=INK, ls=":", lw=1, label="truth")
    for name, found in fits.items():
        mean = np.array([fit.mean("rate") for fit in found])
        std = np.array([fit["rate"].std for fit in found])
        ax.plot(place, mean, color=COLOURS[name], label=name)
        ax.fill_between(place, mean - 2 * std, mean + 2 * std, color=COLOURS[name], alpha=0.2, lw=0)
    ax.set(ylabel="rate", ylim=(0, None))
    ax.legend(loc="upper right")
    bars.bar(place, forgotten, color=BLUE)
    bars.set(ylim=(0, 1), yticks=(0, 1), ylabel="forgotten", xlabel="batch")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
