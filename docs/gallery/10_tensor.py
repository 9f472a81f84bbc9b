"""Three-way (CP) tensor factorization with missing entries: antibodies against COVID-19.

    a_ik ~ Normal(0, 1)     b_jk ~ Normal(0, 1)     c_lk ~ Normal(0, alpha_k)
    y_ijl ~ Normal(sum_k a_ik b_jk c_lk, tau)       tau, alpha_k ~ Gamma(1, 0.1)

y holds how strongly the serum of sample i reacts to antigen j, seen by receptor l (Zohar et al.,
Cell 2020; as a tensor by Tan et al., 2021). A product of three variables is declared as it is
written: it is linear in each of them. A quarter of the entries are hidden from the model.

See: the hidden entries are predicted nearly as well as the others are fitted, and each factor
joins antigens and receptors that act together. At zero a product of three is flat, so that a run
which starts near there can stay there; svmp starts it at rank-one fits of the data.
"""

import numpy as np
from _style import BLUE, GREY, SHARED, figure, save, target

import svmp

ANTIGENS = ("S", "RBD", "N", "S1", "S2", "S1 Trimer")
RECEPTORS = ("IgG1", "IgG2", "IgG3", "IgA1", "IgA2", "IgM", "FcRalpha", "FcR2A", "FcR2B",
             "FcR3A", "FcR3B")  # fmt: skip
FACTORS = 4


def data(samples=90):
    """Return the tensor with a quarter missing (NaN), and the whole; generated if absent."""
    rng = np.random.default_rng(29)
    file = SHARED / "tensors" / "COVID19_data.npy"
    if file.exists():
        whole = np.load(file)[::4][:samples]
    else:
        parts = (rng.normal(size=(n, 3)) for n in (samples, len(ANTIGENS), len(RECEPTORS)))
        whole = np.einsum("ik,jk,lk->ijl", *parts)
        whole = whole + 0.4 * rng.normal(size=whole.shape)
    return np.where(rng.random(whole.shape) < 0.25, np.nan, whole), whole


def model(y, factors=FACTORS):
    sizes = dict(zip(("sample", "antigen", "receptor"), y.shape, strict=True))
    with svmp.Model(coords={**sizes, "factor": factors}) as network:
        tau = svmp.Gamma("tau", alpha=1, beta=0.1)
        alpha = svmp.Gamma("alpha", alpha=1, beta=0.1, dims="factor")
        a = svmp.Normal("a", mu=0, tau=1, dims=("sample", "factor"))
        b = svmp.Normal("b", mu=0, tau=1, dims=("antigen", "factor"))
        c = svmp.Normal("c", mu=0, tau=alpha, dims=("receptor", "factor"))
        mu = (a * b * c).sum("factor")
        svmp.Normal("y", mu=mu, tau=tau, dims=tuple(sizes), observed=y, missing=True)
    return network


def predict(fit):
    return np.einsum("ik,jk,lk->ijl", fit.mean("a"), fit.mean("b"), fit.mean("c"))


def main(path):
    y, whole = data()
    fit = svmp.fit(model(y))
    hidden, mean = np.isnan(y), predict(fit)
    print(
        f"{(~hidden).sum():,} entries, {fit.status} after {len(fit.trace)} sweeps, "
        f"bound {fit.bound:,.1f}"
    )
    for name, mask in (("seen", ~hidden), ("hidden", hidden)):
        explained = 1 - np.var((whole - mean)[mask]) / np.var(whole[mask])
        print(f"{name:6} entries: {explained:.1%} of the variance explained")
    plot(path, fit, whole, mean, hidden)


def plot(path, fit, whole, mean, hidden):
    fig, axes = figure(1, 3, (10.5, 4.2), width_ratios=(1.25, 0.85, 1.2))
    scatter, antigens, receptors = axes
    limits = np.percentile(whole, (0.2, 99.8))
    scatter.plot(limits, limits, color=GREY, lw=1)
    scatter.plot(mean[hidden], whole[hidden], ".", color=BLUE, ms=3, alpha=0.35, mew=0)
    scatter.set(xlim=limits, ylim=limits, xlabel="predicted", ylabel="measured")
    explained = 1 - np.var((whole - mean)[hidden]) / np.var(whole[hidden])
    scatter.set_title(f"Hidden entries: {explained:.0%} explained")
    size = [np.sqrt((fit.mean(name) ** 2).mean(0)) for name in ("a", "b", "c")]
    order = np.argsort(-np.prod(size, axis=0))
    parts = [(antigens, "b", ANTIGENS, "Antigens"), (receptors, "c", RECEPTORS, "Receptors")]
    for ax, name, labels, title in parts:
        sign = np.sign(fit.mean(name).sum(0))
        largest = np.maximum(np.abs(fit.mean(name)).max(0), 1e-6)  # a factor may be switched off
        loading = (sign * fit.mean(name) / largest)[:, order]
        ax.imshow(loading, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
        ax.set_yticks(range(len(labels)), labels)
        ax.set_xticks(range(len(order)), range(1, len(order) + 1))
        ax.set(title=title, xlabel="factor")
        ax.grid(False)
    fig.colorbar(receptors.images[0], ax=receptors, label="loading (largest = 1)", aspect=30)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))
