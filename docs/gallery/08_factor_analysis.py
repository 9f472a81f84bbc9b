"""Factor analysis and PCA with missing values: gaps in the readings of twelve sensors.

    x_t ~ MvNormal(0, I)         W_sk ~ Normal(0, alpha_k)      m_s ~ Normal(0, 0.01)
    y_ts ~ Normal(m_s + x_t . W_s, tau_s)     tau_s ~ Gamma(1, 0.1), alpha_k ~ Gamma(1, 0.1)

With one tau for all sensors it is probabilistic PCA. A missing reading is NaN and missing=True:
it is left out of the table of rows, nothing else changes.

See: long gaps of a sensor are filled in from the other sensors, with calibrated intervals. ARD
keeps three of the five factors, which is the true number.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

TIMES, SENSORS, FACTORS = 120, 12, 5


def data():
    """Return readings with gaps (NaN), and the same without."""
    rng = np.random.default_rng(19)
    t = np.arange(TIMES)[:, None] / TIMES
    x = np.hstack([np.sin(6 * np.pi * t), np.cos(11 * t * (1 + t)), np.sign(np.sin(13 * t)) * t])
    w = rng.normal(size=(SENSORS, 3)) * [1.0, 0.8, 1.2]
    noise = rng.permutation(np.geomspace(0.05, 0.8, SENSORS))
    y = 2 * rng.normal(size=SENSORS) + x @ w.T + noise * rng.normal(size=(TIMES, SENSORS))
    gaps = rng.random(y.shape) < 0.1
    for sensor in range(SENSORS):
        start = rng.integers(0, TIMES - 25)
        gaps[start : start + 25, sensor] = True
    return np.where(gaps, np.nan, y), y


def model(y, kind="factor analysis"):
    times, sensors = y.shape
    with svmp.Model(coords={"time": times, "sensor": sensors, "factor": FACTORS}) as network:
        own = "sensor" if kind == "factor analysis" else None
        tau = svmp.Gamma("tau", alpha=1, beta=0.1, dims=own)
        alpha = svmp.Gamma("alpha", alpha=1, beta=0.1, dims="factor")
        m = svmp.Normal("m", mu=0, tau=0.01, dims="sensor")
        w = svmp.Normal("w", mu=0, tau=alpha, dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(FACTORS), dims=("time", "factor"))
        mu = m + svmp.dot(x, w)
        svmp.Normal("y", mu=mu, tau=tau, dims=("time", "sensor"), observed=y, missing=True)
    return network


def start(y):
    """Return the start: the principal components, with gaps filled by the sensor's mean."""
    m = np.nanmean(y, axis=0)
    u, s, v = np.linalg.svd(np.where(np.isnan(y), 0, y - m), full_matrices=False)
    root = np.sqrt(len(y))
    return {"m": m, "x": root * u[:, :FACTORS], "w": (v.T * s)[:, :FACTORS] / root}


def predict(fit, draws=400):
    """Return mean and standard deviation of every reading, including noise."""
    x, w, m = (fit[name].draw(draws, seed=i) for i, name in enumerate(("x", "w", "m")))
    signal = np.einsum("dtk,dsk->dts", x, w) + m[:, None, :]
    mean = fit.mean("x") @ fit.mean("w").T + fit.mean("m")
    return mean, np.sqrt(signal.var(0) + 1 / fit.mean("tau"))


def main(path):
    y, truth = data()
    gaps = np.isnan(y)
    for kind in ("PCA", "factor analysis"):
        fit = svmp.fit(model(y, kind), svmp.FullVB(), init=start(y), max_sweeps=80)
        mean, sd = predict(fit)
        error = np.sqrt(np.mean((mean - truth)[gaps] ** 2))
        inside = np.mean(np.abs(mean - truth)[gaps] < 2 * sd[gaps])
        print(
            f"{kind:15} bound {fit.bound:8.1f}   RMSE in the gaps {error:.3f}   "
            f"within 2 sd {inside:.0%}"
        )
    print("scale of each factor:", np.sort(1 / np.sqrt(fit.mean("alpha")))[::-1].round(2))
    plot(path, y, truth, fit, mean, sd)


def plot(path, y, truth, fit, mean, sd):
    fig, axes = figure(1, 2, (10.5, 4.4), width_ratios=(2.6, 1))
    lines, bars = axes
    time = np.arange(TIMES)
    for row, sensor in enumerate((0, 3, 5, 8)):
        shift = 6.0 * row - np.nanmean(y[:, sensor])
        gap = np.isnan(y[:, sensor])
        low, high = (mean + sign * 2 * sd for sign in (-1, 1))
        lines.fill_between(
            time,
            low[:, sensor] + shift,
            high[:, sensor] + shift,
            color=BLUE,
            alpha=0.2,
            lw=0,
            label="± 2 sd" if row == 0 else None,
        )
        lines.plot(
            time, mean[:, sensor] + shift, color=BLUE, lw=1.2, label="E[y]" if row == 0 else None
        )
        lines.plot(
            time[~gap],
            y[~gap, sensor] + shift,
            ".",
            color=GREY,
            ms=3.5,
            label="read" if row == 0 else None,
        )
        lines.plot(
            time[gap],
            truth[gap, sensor] + shift,
            ".",
            color=ORANGE,
            ms=4.5,
            label="missing (never seen)" if row == 0 else None,
        )
    lines.set(title="Four of twelve sensors", xlabel="time", yticks=6.0 * np.arange(4))
    lines.set_yticklabels([f"sensor {s}" for s in (0, 3, 5, 8)])
    lines.set_ylim(-4, 25)
    lines.legend(ncols=4, loc="upper left")
    scale = np.sort(1 / np.sqrt(fit.mean("alpha")))[::-1]
    bars.bar(np.arange(1, FACTORS + 1), scale, 0.6, color=BLUE, alpha=0.8)
    bars.set(title="ARD: scale of factors", xlabel="factor", xticks=np.arange(1, FACTORS + 1))
    bars.grid(axis="x", visible=False)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
