"""A robot's track: position and velocity from readings of several sensors, many of them missing.

    x_t = (position, velocity) ~ Normal(A x_(t-1), diag(tau)^-1)     A: two local trends
    reading_r ~ Normal(x_t(r) of direction d(r), s_sensor)           tau, s ~ Gamma(1, 0.01)

The readings are a table of their own, with a key to the step: a step may have none or several, and
each sensor has its own precision. In a tunnel there are none at all.

See: the track through the tunnel has the right direction and an honest band, the noise of each
sensor is learned, and the last steps are a forecast.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

STEPS, TUNNEL, END = 160, (60, 85), 145
NOISE = np.array([0.3, 1.0])


def data():
    """Return the true track, and readings: step, direction (0 or 1), sensor and value."""
    rng = np.random.default_rng(42)
    speed = np.array([0.5, 0.2]) + np.cumsum(rng.normal(0, 0.06, (STEPS, 2)), axis=0)
    track = np.cumsum(speed, axis=0)
    step = np.sort(rng.integers(0, END, 220))
    step = step[(step < TUNNEL[0]) | (step >= TUNNEL[1])]
    sensor = (rng.random(len(step)) < 0.6).astype(int)
    step, sensor = np.repeat(step, 2), np.repeat(sensor, 2)
    direction = np.tile([0, 1], len(step) // 2)
    value = track[step, direction] + rng.normal(0, NOISE[sensor])
    return track, step, direction, sensor, value


def model(step, direction, sensor, value):
    structure = svmp.local_trend() + svmp.local_trend()
    coords = {"step": STEPS, "state": structure.size, "sensor": len(NOISE)}
    with svmp.Model(coords=coords) as network:
        tau = svmp.Gamma("tau", alpha=1, beta=0.01, dims="state")
        x = svmp.LinearGaussianChain(
            "x", init=svmp.Normal.dist(0, 0.1), A=structure.A, tau=tau, dims=("step", "state")
        )
        s = svmp.Gamma("s", alpha=1, beta=0.01, dims="sensor")
        position = x[step, 2 * direction]
        svmp.Normal("reading", mu=position, tau=s[sensor], observed=value)
    return network


def main(path):
    track, *readings = data()
    fit = svmp.fit(model(*readings), svmp.FullVB())
    mean, std = fit.mean("x")[:, [0, 2]], fit["x"].std[:, [0, 2]]
    inside = np.abs(mean - track) < 1.96 * std
    dark = slice(*TUNNEL)
    print(f"{len(readings[3])} readings of {STEPS} steps; {fit.status}, bound {fit.bound:.2f}")
    print(f"noise of the sensors {(fit.mean('s') ** -0.5).round(2)}, drawn with {NOISE}")
    print(f"error in the tunnel {np.abs(mean - track)[dark].mean():.2f}")
    print(
        f"inside the 95% bands: {inside.mean():.0%} of all steps, {inside[dark].mean():.0%} there"
    )
    plot(path, track, readings, fit, mean, std)


def plot(path, track, readings, fit, mean, std):
    _, direction, _, value = readings
    fig, axes = figure(1, 2, (9.5, 4.2))
    ax = axes[0]
    for some in fit["x"].draw(20, seed=1):
        ax.plot(some[:, 0], some[:, 2], color=BLUE, lw=0.4, alpha=0.5)
    ax.plot(*track.T, color=GREY, label="true track")
    ax.plot(*mean.T, color=BLUE, label="mean, and 20 draws of the whole track")
    east, north = value[direction == 0], value[direction == 1]
    ax.plot(east, north, ".", color=ORANGE, ms=3, label="readings")
    ax.set(xlabel="east", ylabel="north")
    ax.legend()
    ax = axes[1]
    time = np.arange(STEPS)
    ax.fill_between(time, -1.96 * std[:, 1], 1.96 * std[:, 1], color=BLUE, alpha=0.25,
                    label="95% band")  # fmt: skip
    ax.plot(time, track[:, 1] - mean[:, 1], color=GREY, label="true position")
    ax.axvspan(*TUNNEL, color=ORANGE, alpha=0.15, label="tunnel")
    ax.axvspan(END, STEPS, color=GREY, alpha=0.15, label="forecast")
    ax.set(xlabel="step", ylabel="north, from the mean")
    ax.legend()
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
