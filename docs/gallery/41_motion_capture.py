"""Motion capture: which exercise is a person doing? A chain of states beside a plain mixture.

    start ~ Dirichlet(1)                      move_i ~ Dirichlet(1 + 100 [i = j])
    z_t ~ Categorical(move_z(t-1))            x_t ~ MvNormal(mu_z, L_z)
    mu_k ~ MvNormal(0, 0.1 I)                 L_k ~ Wishart(14, I / 14)

Six recordings of twelve joint angles; each frame has an exercise as its label, which the model does
not see. States have no names: a state gets the exercise that most of its frames have, and two
divisions of the frames are compared by which pairs of frames are together (the adjusted Rand
index), which needs no names.

See: with the same densities, a mixture that sees each frame by itself jumps between components many
times a second. The chain stays, so that its segments are exercises and not poses.
"""

import numpy as np
from _style import COLOURS, SHARED, figure, save, target

import svmp

STATES, STAY, STARTS = 12, 100.0, 2


def data():
    """Return the angles, standardised, the recording of each frame, and its exercise."""
    file = SHARED / "mocap" / "dataset.npz"
    if not file.exists():
        return generated()
    with np.load(file) as found:
        x, labels, cuts = found["X"], found["TrueZ"], found["doc_range"]
    recording = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    return (x - x.mean(0)) / x.std(0), recording, labels.astype(int)


def generated():
    """Return frames of four exercises with 12 angles that swing, in four recordings."""
    rng = np.random.default_rng(0)
    centre, swing = rng.normal(0, 1.5, (4, 12)), rng.normal(0, 1, (4, 12))
    labels = np.concatenate([np.repeat(rng.permutation(4), 60) for _ in range(4)])
    phase = np.sin(np.arange(len(labels)) / 3)
    x = centre[labels] + swing[labels] * phase[:, None] + rng.normal(0, 0.3, (len(labels), 12))
    return (x - x.mean(0)) / x.std(0), np.repeat(np.arange(4), 240), labels


def model(x, recording, chain=True):
    """Declare a chain of states, or a mixture with the same components."""
    angles = x.shape[1]
    coords = {"state": STATES, "to": STATES, "frame": len(x), "angle": angles}
    with svmp.Model(coords=coords) as network:
        start = svmp.Dirichlet("start", a=1, dims="state")
        if chain:
            often = 1 + STAY * np.eye(STATES)
            move = svmp.Dirichlet("move", a=often, dims=("state", "to"))
            z = svmp.DiscreteMarkovChain("z", start, move, sequence=recording, dims="frame")
        else:
            z = svmp.Categorical("z", p=start, dims="frame")
        tau = svmp.Wishart(
            "tau", nu=angles + 2, V=np.eye(angles) / (angles + 2), dims=("state", "angle", "angle")
        )
        mu = svmp.MvNormal("mu", mu=0, tau=0.1 * np.eye(angles), dims=("state", "angle"))
        emission = svmp.MvNormal.dist(mu=mu, tau=tau)
        svmp.Mixture("x", z, emission, dims=("frame", "angle"), observed=x)
    return network


def best_fit(network):
    """Return the fit with the highest bound of some starts."""
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed, tol=1e-4) for seed in range(STARTS)]
    return max(fits, key=lambda fit: fit.bound)


def named(states, labels):
    """Return for each frame the exercise that most frames of its state have."""
    table = np.zeros((STATES, labels.max() + 1))
    np.add.at(table, (states, labels), 1)
    return table.argmax(1)[states]


def rand_index(a, b):
    """Return the adjusted Rand index of two divisions: 1 if they are the same, 0 if by chance."""

    def pairs(n):
        return (n * (n - 1) / 2).sum()

    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    both, one, two = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    chance = one * two / (len(a) * (len(a) - 1) / 2)
    return (both - chance) / ((one + two) / 2 - chance)


def segments(states, recording):
    """Return the number of stretches of frames in one state."""
    return int(((np.diff(states) != 0) | (np.diff(recording) != 0)).sum()) + 1


def main(path):
    x, recording, labels = data()
    chain = best_fit(model(x, recording))
    mixture = best_fit(model(x, recording, chain=False))
    found = {"chain": chain.path("z"), "mixture": mixture.mean("z").argmax(1)}
    print(
        f"{len(x):,} frames, {len(np.unique(labels))} exercises, "
        f"{segments(labels, recording)} segments"
    )
    for name, states in found.items():
        right = (named(states, labels) == labels).mean()
        index, count = rand_index(states, labels), segments(states, recording)
        print(f"{name:8} {right:.0%} of frames right, Rand index {index:.2f}, {count} segments")
    plot(path, recording, {"exercise": labels, **{k: named(v, labels) for k, v in found.items()}})


def plot(path, recording, rows):
    fig, axes = figure(3, 2, (9.5, 4.6), sharey=True)
    palette = [*COLOURS, "#444444", "#8A8A8A", "#F0E442", "#7F3C8D", "#11A579", "#A5AA99"]
    for number, ax in enumerate(axes.flat):
        frames = np.flatnonzero(recording == number)
        for height, (_, values) in enumerate(reversed(rows.items())):
            for k in np.unique(values[frames]):
                runs = np.flatnonzero(np.diff(np.r_[0, values[frames] == k, 0]))
                spans = [(a, b - a) for a, b in runs.reshape(-1, 2)]
                colour = palette[k % len(palette)]
                ax.broken_barh(spans, (height + 0.1, 0.8), color=colour, lw=0)
        ax.set_yticks(np.arange(len(rows)) + 0.5, list(reversed(rows)))
        ax.set_title(f"recording {number + 1}")
        ax.grid(visible=False)
        if number >= 4:
            ax.set_xlabel("frame")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
