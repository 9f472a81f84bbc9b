"""The Kullback-Leibler divergence between two members of an exponential family."""

from __future__ import annotations

import numpy as np

from svmp.families import MvNormal, Normal
from svmp.families.family import Array, Family, dot


def kl(family: Family, q: Array, p: Array) -> Array:
    """Return KL(q || p) = (lam - lam') . E_q[phi] - A(lam) + A(lam').

    For Normals these terms are of the size of tau mu^2 and would cancel, so that for them it is
    (tr(r) - log|I + r| + (mu - mu')' tau' (mu - mu')) / 2 with r = tau^-1 tau' - I.
    """
    if isinstance(family, Normal | MvNormal):
        mu, tau = (family.standard(q)[name] for name in ("mu", "tau"))
        mu_p, tau_p = (family.standard(p)[name] for name in ("mu", "tau"))
        if isinstance(family, Normal):
            mu, mu_p = mu[..., None], mu_p[..., None]
            tau, tau_p = tau[..., None, None], tau_p[..., None, None]
        change = np.linalg.solve(tau, tau_p - tau)
        log_det = np.linalg.slogdet(np.eye(mu.shape[-1]) + change).logabsdet
        trace = np.trace(change, axis1=-2, axis2=-1)
        gap = mu - mu_p
        return 0.5 * (trace - log_det + np.einsum("...i,...ij,...j->...", gap, tau_p, gap))
    return dot(q - p, family.moments(q)) - family.log_partition(q) + family.log_partition(p)
