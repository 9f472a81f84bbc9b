"""Random systems of normal equations, and the same as dense matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from svmp.inference.gaussian.system import System

Made = tuple[System, list[np.ndarray], np.ndarray, list[np.ndarray]]
"""A system, the weights of its tables, its precision matrix, and the lines of each table."""
RowsOf = tuple[np.ndarray, int, np.ndarray]
"""Lines, lines of a row, and the weights of rows."""


def ids(rng: np.random.Generator, rows: int, size: int) -> np.ndarray:
    return rng.integers(0, size, rows)


def at(keys: np.ndarray, size: int) -> np.ndarray:
    return np.eye(size)[keys]


def vectors(keys: np.ndarray, size: int, slopes: np.ndarray) -> np.ndarray:
    """Return lines of vectors of two entries, an intercept and a slope, of each group."""
    found = np.zeros((len(keys), 2 * size))
    found[np.arange(len(keys)), 2 * keys] = 1
    found[np.arange(len(keys)), 2 * keys + 1] = slopes
    return found


def crossed(rng: np.random.Generator) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Users, items and an intercept."""
    rows, users, items = rng.integers(1, 300), rng.integers(2, 60), rng.integers(2, 30)
    x = np.c_[at(ids(rng, rows, users), users), at(ids(rng, rows, items), items), np.ones(rows)]
    return [users, items, 1], [1, 1, 1], [x]


def nested(rng: np.random.Generator) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Classes in schools in districts, and an intercept; each with a row of its own."""
    districts, schools, classes = rng.integers(1, 5), rng.integers(2, 15), rng.integers(3, 60)
    school, above = ids(rng, classes, schools), ids(rng, schools, districts)
    size = classes + schools + districts + 1
    first = np.c_[np.eye(classes), -at(school, schools), np.zeros((classes, districts + 1))]
    second = np.c_[
        np.zeros((schools, classes)), np.eye(schools), -at(above, districts), np.zeros((schools, 1))
    ]
    third = np.c_[
        np.zeros((districts, size - 1 - districts)), np.eye(districts), -np.ones((districts, 1))
    ]
    rows = rng.integers(1, 200)
    seen = np.c_[at(ids(rng, rows, classes), classes), np.zeros((rows, size - classes))]
    return [classes, schools, districts, 1], [1, 1, 1, 1], [first, second, third, seen]


def slopes(rng: np.random.Generator) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Vectors of groups, crossed with items and beside two covariates."""
    rows, groups, items = rng.integers(1, 200), rng.integers(2, 40), rng.integers(2, 20)
    x = vectors(ids(rng, rows, groups), groups, rng.normal(size=rows))
    lines = np.c_[x, at(ids(rng, rows, items), items), rng.normal(size=(rows, 2))]
    return [groups, items, 2], [2, 1, 1], [lines]


def chain(rng: np.random.Generator) -> tuple[list[int], list[int], list[np.ndarray]]:
    """A random walk of vectors beside seasons: rows of two lines."""
    steps, seasons = int(rng.integers(3, 60)), int(rng.integers(2, 6))
    walk = np.kron(np.eye(steps)[1:] - 0.7 * np.eye(steps)[:-1], np.eye(2))
    walk = np.c_[walk, np.zeros((len(walk), seasons))]
    seen = np.c_[np.kron(np.eye(steps), [1.0, 0.0]), at(np.arange(steps) % seasons, seasons)]
    return [steps, seasons], [2, 1], [walk, seen]


KINDS: list[Callable[..., tuple[list[int], list[int], list[np.ndarray]]]] = [
    crossed,
    nested,
    slopes,
    chain,
]


def made(kind: Callable[..., tuple[list[int], list[int], list[np.ndarray]]], seed: int) -> Made:
    """Return a random system of some kind: with weights, missing rows, and priors."""
    rng = np.random.default_rng(seed)
    counts, widths, tables = kind(rng)
    element = np.repeat(np.arange(sum(counts)), np.repeat(widths, counts))
    variables = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    total, lines, weights = np.zeros((len(element),) * 2), [], []
    tables = [*tables, np.eye(len(element))]
    for place, x in enumerate(tables):
        size = 2 if kind is chain and place == 0 else 1
        rows = len(x) // size
        root = rng.normal(size=(rows, size, size))
        weight = root @ root.swapaxes(1, 2) + 0.1 * np.eye(size)
        if rng.random() < 0.5:  # one precision for all rows
            weight[:] = weight[0] if rows else weight
        if place < len(tables) - 1:
            weight[rng.random(rows) < 0.1] = 0.0  # missing rows
        for row, w in zip(x.reshape(rows, size, -1), weight, strict=True):
            total += row.T @ w @ row
        lines.append((sparse.csr_array(x), size))
        weights.append(weight.reshape(rows, size * size))
    return System.of(lines, element, variables), weights, total, tables
