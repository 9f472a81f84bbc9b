"""Item response: how able is each pupil, and how hard and how telling is each question?

    able_i ~ Normal(0, 1)      hard_j ~ Normal(0, 0.25)      slope_j ~ Normal(1, 4)
    right_ij ~ Bernoulli(logit = slope_j able_i - hard_j)

The two-parameter logistic model (2PL). A steep slope tells able pupils from others, a flat one
does not. Every pupil was asked half of the questions: the gaps are `missing`.

See: two pupils with the same number of right answers differ if they were asked other questions.
Abilities are known to about half a standard deviation, which is what twenty answers can tell.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp


def data(pupils=400, questions=40):
    """Return answers, 1 if right and NaN if not asked, and the truth."""
    rng = np.random.default_rng(6)
    able, hard = rng.normal(size=pupils), 1.3 * rng.normal(size=questions)
    slope = 1 + 0.4 * rng.normal(size=questions)
    logit = slope * able[:, None] - hard
    right = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    right[rng.random(right.shape) < 0.5] = np.nan
    return right, {"able": able, "hard": hard, "slope": slope}


def model(right):
    with svmp.Model(coords=dict(zip(("pupil", "question"), right.shape, strict=True))) as network:
        able = svmp.Normal("able", mu=0, tau=1, dims="pupil")
        hard = svmp.Normal("hard", mu=0, tau=0.25, dims="question")
        slope = svmp.Normal("slope", mu=1, tau=4, dims="question")
        logit = slope * able - hard
        dims = ("pupil", "question")
        svmp.Bernoulli("right", logit=logit, dims=dims, observed=right, missing=True)
    return network


def main(path):
    right, truth = data()
    fit = svmp.fit(model(right))
    print(f"{np.sum(~np.isnan(right))} answers; {fit.status}, bound {fit.bound:.1f}")
    for name, value in truth.items():
        found = fit.mean(name)
        error = np.sqrt(np.mean((found - value) ** 2))
        print(
            f"{name:6} correlation with the truth {np.corrcoef(found, value)[0, 1]:.2f},", end=" "
        )
        print(f"error {error:.2f}, sd of q {fit[name].std.mean():.2f}")
    plot(path, right, truth, fit)


def plot(path, right, truth, fit):
    fig, axes = figure(1, 3, (10.5, 3.8))
    share = np.nanmean(right, axis=1)
    axes[0].plot(share, fit.mean("able"), "o", color=BLUE, ms=3, alpha=0.6)
    axes[0].set(xlabel="share of right answers", ylabel="posterior mean of ability")
    axes[0].set_title("The same share, another ability")
    for ax, name, colour in zip(axes[1:], ("able", "hard"), (BLUE, ORANGE), strict=True):
        ends = np.array([truth[name].min(), truth[name].max()])
        ax.plot(ends, ends, color=GREY, ls=":")
        ax.errorbar(
            truth[name],
            fit.mean(name),
            2 * fit[name].std,
            fmt="o",
            ms=3,
            lw=0.5,
            color=colour,
            alpha=0.4,
        )
        ax.set(xlabel="truth", ylabel="posterior mean ± 2 sd")
    axes[1].set_title("Ability of 400 pupils")
    axes[2].set_title("How hard 40 questions are")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
