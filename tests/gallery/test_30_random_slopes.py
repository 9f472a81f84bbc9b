"""Random slopes: with fixed precisions, a Gaussian that a dense solve gives exactly."""

from __future__ import annotations

import numpy as np

import svmp


def test_fixed_precisions_give_the_exact_means(script):
    x, y, of, z = script.data(schools=12)
    precision, noise = np.linalg.inv(script.SPREAD), 2.0
    network = script.model(x, y, of, z, precision, noise)
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-15, max_sweeps=5000)
    schools, prior = len(z), 0.01
    size = 4 + 2 * schools  # gamma_0, gamma_1, then the lines of the schools
    total, linear = np.zeros((size, size)), np.zeros(size)
    total[:4, :4] += prior * np.eye(4)
    for s in range(schools):
        map_ = np.zeros((2, size))
        map_[:, 4 + 2 * s : 6 + 2 * s] = np.eye(2)
        map_[:, :2], map_[:, 2:4] = -np.eye(2), -z[s] * np.eye(2)
        total += map_.T @ precision @ map_
    for i, s in enumerate(of):
        row = np.zeros(size)
        row[4 + 2 * s : 6 + 2 * s] = 1, x[i]
        total += noise * np.outer(row, row)
        linear += noise * y[i] * row
    mean = np.linalg.solve(total, linear)
    found = np.concatenate([np.ravel(fit.mean(n)) for n in ("gamma_0", "gamma_1", "beta")])
    np.testing.assert_allclose(found, mean, atol=1e-5)


def test_coefficients_are_recovered(script):
    fit = svmp.fit(script.model(*script.data()), svmp.FullVB())
    found = np.stack([fit.mean("gamma_0"), fit.mean("gamma_1")])
    np.testing.assert_allclose(found, script.GAMMA, atol=0.25)
