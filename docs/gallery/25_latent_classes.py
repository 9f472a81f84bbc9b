"""Latent classes: which kinds of customers are there, from yes or no to ten questions?

    share ~ Dirichlet(1/2, ..., 1/2)         z_n ~ Categorical(share)
    p_kj ~ Beta(1, 1)
    answer_nj ~ Bernoulli(p_zj)

Answers are independent within a class, and dependent over all. All answers of a person share one
choice: z has a key for each answer.

See: of fits with one to five classes, the bound is highest with the three that the data were drawn
with. Each class has a profile, and each person a probability for each class.
"""

import numpy as np
from _style import BLUE, COLOURS, GREY, figure, save, target

import svmp

PROFILES = np.array(
    [
        [0.9, 0.8, 0.9, 0.7, 0.1, 0.2, 0.1, 0.2, 0.5, 0.3],
        [0.2, 0.1, 0.3, 0.2, 0.8, 0.9, 0.7, 0.3, 0.5, 0.1],
        [0.3, 0.7, 0.2, 0.8, 0.3, 0.1, 0.8, 0.9, 0.5, 0.9],
    ]
)
SHARES = np.array([0.5, 0.3, 0.2])
STARTS = 2


def data(people=300):
    """Return the answers, and the true class of each person."""
    rng = np.random.default_rng(20)
    kind = rng.choice(len(SHARES), people, p=SHARES)
    return (rng.random((people, PROFILES.shape[1])) < PROFILES[kind]).astype(int), kind


def model(answers, classes):
    people, questions = answers.shape
    person, question = np.indices(answers.shape).reshape(2, -1)
    coords = {"person": people, "question": questions, "class": classes}
    with svmp.Model(coords=coords) as network:
        share = svmp.Dirichlet("share", a=0.5, dims="class")
        z = svmp.Categorical("z", p=share, dims="person")
        p = svmp.Beta("p", alpha=1, beta=1, dims=("class", "question"))
        component = svmp.Bernoulli.dist(p=p[:, question])
        svmp.Mixture("answer", z[person], component, observed=answers.ravel())
    return network


def best(answers, classes, starts=STARTS):
    """Return the fit with the highest bound of some random starts."""
    network = model(answers, classes)
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed, max_sweeps=300) for seed in range(starts)]
    return max(fits, key=lambda fit: fit.bound)


def main(path):
    answers, kind = data()
    fits = {classes: best(answers, classes) for classes in range(1, 6)}
    for classes, fit in fits.items():
        print(f"{classes} classes: bound {fit.bound:.1f}")
    fit = fits[3]
    order = np.argsort(-fit.mean("share"))
    found = np.argsort(order)[fit.mean("z").argmax(1)]
    print(f"shares {fit.mean('share')[order].round(2)}   (drawn with {SHARES})")
    print(f"persons in their own class: {np.mean(found == kind):.2f}")
    plot(path, fits, order)


def plot(path, fits, order):
    fig, (left, right) = figure(1, 2, (10.5, 4), gridspec_kw={"width_ratios": (2, 3)})
    left.plot(list(fits), [fit.bound for fit in fits.values()], "o-", color=BLUE)
    left.axvline(3, color=GREY, ls=":")
    left.set(xlabel="classes", ylabel="bound")
    left.set_title("How many classes?")
    questions = np.arange(PROFILES.shape[1])
    q = fits[3]["p"]
    for k, (component, colour) in enumerate(zip(order, COLOURS, strict=False)):
        shift = 0.15 * (k - 1)
        place, mean, sd = questions + shift, q.mean[component], q.std[component]
        right.errorbar(place, mean, 2 * sd, fmt="o", color=colour, ms=4, label=f"class {k + 1}")
        right.plot(place, PROFILES[k], "_", color=colour, ms=12)
    right.set_xticks(questions, questions + 1)
    right.set(xlabel="question", ylabel="P(yes)", ylim=(0, 1))
    right.set_title("Profiles ± 2 sd (dashes: truth)")
    right.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, -0.16))
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
