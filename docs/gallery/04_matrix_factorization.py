"""Matrix factorization of ratings: the paper's network, and two richer ones.

paper:    u_mk ~ Normal(0, 1)    v_nk ~ Normal(0, 1)    r_mn ~ Normal(u_m . v_n, 1)
biases:   r_mn ~ Normal(mean + a_m + b_n + u_m . v_n, tau),   v_nk ~ Normal(0, alpha_k),
          with tau, the precisions of the biases and alpha_k (ARD) learned
vectors:  the paper's network with u_m and v_n as MvNormal: the same model, but q(u_m) has a full
          covariance, where the paper's q factorises over k

See: full VB raises the bound in every sweep. A richer q raises it more for the same model, and
a better model more than a richer q. ARD finds that three of the five factors are used.
"""

import numpy as np
from _style import BLUE, GREEN, INK, ORANGE, figure, save, target

import svmp

USERS, ITEMS, FACTORS = 120, 80, 5
NOISE = 0.5
KINDS = ("paper", "vectors", "biases")


def data(count=3000):
    """Ratings with biases and three factors, centred; every tenth is held out."""
    rng = np.random.default_rng(7)
    activity = rng.lognormal(0, 0.8, USERS)
    cells = rng.choice(
        USERS * ITEMS, count, replace=False, p=np.repeat(activity, ITEMS) / activity.sum() / ITEMS
    )
    user, item = np.divmod(cells, ITEMS)
    a, b = rng.normal(0, 0.4, USERS), rng.normal(0, 0.6, ITEMS)
    u, v = rng.normal(size=(USERS, 3)), rng.normal(0, 0.5, (ITEMS, 3))
    rating = a[user] + b[item] + (u[user] * v[item]).sum(1) + rng.normal(0, NOISE, count)
    held = np.arange(count) % 10 == 0
    rating -= rating[~held].mean()
    return (user[~held], item[~held], rating[~held]), (user[held], item[held], rating[held])


def model(user, item, rating, kind="paper"):
    with svmp.Model(coords={"user": USERS, "item": ITEMS, "factor": FACTORS}) as network:
        if kind == "vectors":
            one = np.eye(FACTORS)
            u = svmp.MvNormal("u", mu=0, tau=one, dims=("user", "factor"))
            v = svmp.MvNormal("v", mu=0, tau=one, dims=("item", "factor"))
            svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rating)
        elif kind == "biases":
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            of_user = svmp.Gamma("of_user", alpha=1, beta=0.1)
            of_item = svmp.Gamma("of_item", alpha=1, beta=0.1)
            alpha = svmp.Gamma("alpha", alpha=1, beta=0.1, dims="factor")
            mean = svmp.Normal("mean", mu=0, tau=0.1)
            a = svmp.Normal("a", mu=0, tau=of_user, dims="user")
            b = svmp.Normal("b", mu=0, tau=of_item, dims="item")
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=alpha, dims=("item", "factor"))
            mu = mean + a[user] + b[item] + svmp.dot(u[user], v[item])
            svmp.Normal("r", mu=mu, tau=tau, observed=rating)
        else:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rating)
    return network


def predict(fit, user, item):
    """Return E[r] of pairs."""
    mean = np.einsum("rk,rk->r", fit.mean("u")[user], fit.mean("v")[item])
    if "a" in fit.posteriors:
        mean += fit.mean("mean") + fit.mean("a")[user] + fit.mean("b")[item]
    return mean


def main(path):
    train, (user, item, rating) = data()
    method = svmp.FullVB()
    fits = {kind: svmp.fit(model(*train, kind), method, max_sweeps=40, tol=0) for kind in KINDS}
    errors = {
        kind: np.sqrt(np.mean((predict(f, user, item) - rating) ** 2)) for kind, f in fits.items()
    }
    print(f"held-out RMSE of the mean {rating.std():.4f}; the noise alone is {NOISE}")
    for kind, fit in fits.items():
        print(f"{kind:8} bound {fit.bound:10.2f}   held-out RMSE {errors[kind]:.4f}")
    print(
        "scale of each factor:", np.sort(1 / np.sqrt(fits["biases"].mean("alpha")))[::-1].round(2)
    )
    plot(path, fits, errors)


def plot(path, fits, errors):
    fig, (climb, held, factors) = figure(1, 3, (10.5, 3.7), width_ratios=(1.7, 1, 1))
    colours = dict(zip(KINDS, (BLUE, GREEN, ORANGE), strict=True))
    for kind, fit in fits.items():
        bound = fit.trace["bound"]
        climb.plot(np.arange(1, len(bound) + 1), bound, color=colours[kind])
        climb.annotate(
            kind,
            (len(bound), bound[-1]),
            xytext=(0, -14 if kind == "paper" else 5),
            textcoords="offset points",
            ha="right",
            color=colours[kind],
            weight="bold",
        )
    low = min(fit.trace["bound"][2] for fit in fits.values())
    climb.set(
        xlabel="sweep", ylabel="bound (nats)", title="The bound never falls", ylim=(low, None)
    )
    for place, (kind, error) in enumerate(errors.items()):
        held.bar(place, error, 0.6, color=colours[kind], alpha=0.8)
        held.annotate(
            f"{error:.3f}", (place, error), xytext=(0, 3), textcoords="offset points", ha="center"
        )
    held.axhline(NOISE, color=INK, ls="--", lw=1.2, label="the noise alone")
    held.set(title="Held-out RMSE", xticks=range(3), xticklabels=KINDS, ylim=(0, 0.9))
    held.legend(loc="upper left")
    scale = np.sort(1 / np.sqrt(fits["biases"].mean("alpha")))[::-1]
    factors.bar(np.arange(1, FACTORS + 1), scale, 0.6, color=ORANGE, alpha=0.8)
    factors.set(title="ARD: scale of factors", xlabel="factor", xticks=np.arange(1, FACTORS + 1))
    for ax in (held, factors):
        ax.grid(axis="x", visible=False)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
