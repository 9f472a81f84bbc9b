"""Random effects in groups within groups: pupils in schools in districts.

    region     ~ Normal(0, 0.0001)
    district_d ~ Normal(region, tau_district)
    school_s   ~ Normal(district_d(s), tau_school)
    score_n    ~ Normal(school_s(n), tau_pupil)           each tau ~ Gamma(1, 1)

See: a school with many pupils keeps its own average; one with few pupils is shrunk towards its
district, by an amount that is learned from how much schools within a district differ.
"""

import numpy as np
from _style import COLOURS, figure, save, target

import svmp

LEVELS = ("district", "school", "pupil")
TRUTH = {"district": 6.0, "school": 3.0, "pupil": 10.0}
"""Standard deviations of the draw, by level."""


def data(districts=6, schools=60):
    """Return each pupil's score and school, and each school's district."""
    rng = np.random.default_rng(23)
    of_school = np.sort(rng.integers(0, districts, schools))
    district = 60 + TRUTH["district"] * rng.normal(size=districts)
    school = district[of_school] + TRUTH["school"] * rng.normal(size=schools)
    pupils = 1 + rng.poisson(rng.lognormal(1.8, 1.2, schools))
    of_pupil = np.repeat(np.arange(schools), pupils)
    score = school[of_pupil] + TRUTH["pupil"] * rng.normal(size=len(of_pupil))
    return score, of_pupil, of_school


def model(score, of_pupil, of_school, tau=None):
    """Declare the network; `tau` fixes the precisions by level instead of learning them."""
    coords = {"district": of_school.max() + 1, "school": len(of_school)}
    with svmp.Model(coords=coords) as network:
        if tau is None:
            tau = {level: svmp.Gamma(f"tau_{level}", alpha=1, beta=1) for level in LEVELS}
        region = svmp.Normal("region", mu=0, tau=0.0001)
        district = svmp.Normal("district", mu=region, tau=tau["district"], dims="district")
        school = svmp.Normal("school", mu=district[of_school], tau=tau["school"], dims="school")
        svmp.Normal("score", mu=school[of_pupil], tau=tau["pupil"], observed=score)
    return network


def main(path):
    score, of_pupil, of_school = data()
    fit = svmp.fit(model(score, of_pupil, of_school), svmp.FullVB(), tol=1e-9)
    print(
        f"{len(score)} pupils in {len(of_school)} schools; {fit.status} after "
        f"{len(fit.trace)} sweeps, bound {fit.bound:.3f}"
    )
    for level in LEVELS:
        learned = 1 / np.sqrt(fit.mean(f"tau_{level}"))
        print(f"sd between {level:9} {learned:6.2f}   (drawn with {TRUTH[level]})")
    plot(path, score, of_pupil, of_school, fit)


def plot(path, score, of_pupil, of_school, fit):
    fig, ax = figure(1, 1, (9.5, 4.6))
    pupils = np.bincount(of_pupil)
    raw = np.bincount(of_pupil, score) / pupils
    q, place = fit["school"], np.arange(len(of_school)) + 2.0 * of_school
    for d in range(of_school.max() + 1):
        here, colour = of_school == d, COLOURS[d]
        ends = place[here].min() - 0.8, place[here].max() + 0.8
        ax.hlines(fit.mean("district")[d], *ends, color=colour, lw=5, alpha=0.25)
        ax.vlines(place[here], raw[here], q.mean[here], color=colour, lw=1)
        ax.scatter(
            place[here],
            raw[here],
            s=6 + 4 * pupils[here],
            facecolors="none",
            edgecolors=colour,
            lw=1.1,
        )
        ax.plot(place[here], q.mean[here], "o", color=colour, ms=4)
        ax.annotate(
            f"district {d}",
            (np.mean(ends), 1),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            color=colour,
            weight="bold",
        )
    ax.axhline(fit.mean("region"), color="#2B2B2B", ls=":", lw=1)
    ax.set(xticks=[], ylabel="score")
    ax.scatter(
        [],
        [],
        s=40,
        facecolors="none",
        edgecolors="#2B2B2B",
        label="the school's own average (area: pupils)",
    )
    ax.plot([], [], "o", color="#2B2B2B", ms=4, label="E[school]")
    ax.plot([], [], color="#2B2B2B", lw=5, alpha=0.25, label="E[district]")
    ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02))
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
