"""Survival: how much does a treatment lower the risk, if many patients are still alive?

    hazard_k ~ Gamma(1, 10)        events a month in period k, without treatment
    ratio ~ Gamma(2, 2)            of the hazard with treatment
    events_ik ~ Poisson(hazard_k months_ik), times ratio if patient i is treated

The piecewise exponential model. A row is a patient in a period: how many months of it were
observed, and whether the event came. Patients who left the study early (censored) have fewer
months and no event; nothing else is needed for them.

See: the hazard ratio with its uncertainty, and survival curves that agree with those of Kaplan
and Meier.
"""

import numpy as np
from _style import BLUE, INK, ORANGE, figure, save, target

import svmp

EDGES = np.array([0.0, 3, 6, 12, 18, 24, 36])
HAZARD = np.array([0.08, 0.06, 0.05, 0.04, 0.03, 0.02])
RATIO = 0.55


def data(patients=300):
    """Return the months each patient was observed, whether the event came, and who is treated."""
    rng = np.random.default_rng(15)
    treated = rng.integers(0, 2, patients)
    goal = rng.exponential(size=patients) / np.where(treated, RATIO, 1)
    reached = np.append(0, np.cumsum(HAZARD * np.diff(EDGES)))  # cumulative hazard at the edges
    time = np.interp(goal, reached, EDGES, right=np.inf)
    left = np.minimum(rng.uniform(6, 60, patients), EDGES[-1])
    return np.minimum(time, left), time <= left, treated


def table(time, event):
    """Return a row for each patient and period at risk: patient, period, months, events."""
    months = np.clip(time[:, None] - EDGES[:-1], 0, np.diff(EDGES))
    patient, period = np.nonzero(months > 0)
    last = np.searchsorted(EDGES, time, side="left") - 1
    return patient, period, months[patient, period], event[patient] & (period == last[patient])


def model(patient, period, months, events, treated):
    """Declare the network: patients without treatment, and those with it."""
    with svmp.Model(coords={"period": len(HAZARD)}) as network:
        hazard = svmp.Gamma("hazard", alpha=1, beta=10, dims="period")
        ratio = svmp.Gamma("ratio", alpha=2, beta=2)
        for name, rows in (("control", treated[patient] == 0), ("treated", treated[patient] == 1)):
            rate = hazard[period[rows]] * months[rows]
            if name == "treated":
                rate = ratio * rate
            svmp.Poisson(name, mu=rate, observed=events[rows])
    return network


def kaplan_meier(time, event):
    """Return the times of events, and the estimated share of patients without one after each."""
    times = np.unique(time[event])
    at_risk = (time >= times[:, None]).sum(1)
    events = ((time == times[:, None]) & event).sum(1)
    return times, np.cumprod(1 - events / at_risk)


def survival(fit, treated, grid, draws=2000):
    """Return draws of the share of patients without an event at the times of a grid."""
    hazard = fit["hazard"].draw(draws, seed=0)
    hazard = hazard * fit["ratio"].draw(draws, seed=1)[:, None] if treated else hazard
    return np.exp(-hazard @ np.clip(grid - EDGES[:-1, None], 0, np.diff(EDGES)[:, None]))


def main(path):
    time, event, treated = data()
    fit = svmp.fit(model(*table(time, event), treated))
    q = fit["ratio"]
    low, high = np.quantile(q.draw(20_000, seed=2), (0.025, 0.975))
    print(f"{len(time)} patients, {event.sum()} events; {fit.status}, bound {fit.bound:.2f}")
    print(f"hazard ratio {q.mean:.2f}, 95% between {low:.2f} and {high:.2f} (drawn with {RATIO})")
    print(f"hazards a month {fit.mean('hazard').round(3)}   (drawn with {HAZARD})")
    plot(path, time, event, treated, fit)


def plot(path, time, event, treated, fit):
    fig, ax = figure(1, 1, (8.5, 4.6))
    grid = np.linspace(0, EDGES[-1], 200)
    for side, (name, colour) in enumerate((("control", ORANGE), ("treated", BLUE))):
        draws = survival(fit, side, grid)
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        ax.fill_between(grid, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(grid, draws.mean(0), color=colour)
        ax.annotate(name, (grid[-1], draws.mean(0)[-1]), (5, 0), textcoords="offset points",
                    color=colour, weight="bold", va="center", annotation_clip=False)  # fmt: skip
        at, share = kaplan_meier(time[treated == side], event[treated == side])
        ax.step(np.append(0, at), np.append(1, share), where="post", color=INK, lw=0.9, ls="--")
    ax.plot([], [], color=INK, lw=0.9, ls="--", label="Kaplan-Meier")
    ax.set(xlabel="months", ylabel="share without the event", ylim=(0, 1), xlim=(0, EDGES[-1]))
    ax.set_title("Survival, posterior mean and 95%")
    ax.legend(loc="lower left")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
