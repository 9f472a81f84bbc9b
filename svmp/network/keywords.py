"""Keyword arguments that a call does not have: one sentence with the name that was meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

from svmp.errors import KeywordError

P = ParamSpec("P")
R = TypeVar("R")

OTHER_KEYWORDS = {
    "random_seed": "seed",
    "random_state": "seed",
    "rng": "seed",
    "start": "init",
    "initvals": "init",
    "chains": "restarts",
    "n_init": "restarts",
    "cores": "threads",
    "n_jobs": "threads",
    "n": "max_sweeps",
    "max_iter": "max_sweeps",
    "n_iter": "max_sweeps",
    "iterations": "max_sweeps",
    "repeat": "max_sweeps",
    "callback": "watch",
    "callbacks": "watch",
    "progressbar": "progress",
    "verbose": "progress",
    "algorithm": "method",
    "step": "steps",
    "step_size": "steps",
    "learning_rate": "steps",
    "var_names": "names",
    "variables": "names",
    "hdi_prob": "prob",
    "ci_prob": "prob",
    "level": "prob",
    "alpha": "prob",
    "samples": "draws",
    "n_samples": "draws",
    "size": "draws",
    "forgetting": "forget",
}
"""Keywords of other libraries, and the ones that mean the same here."""


def known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse keyword arguments that a function does not have.

    >>> @known_keywords
    ... def predict(seed=0): ...
    >>> predict(random_seed=1)
    Traceback (most recent call last):
    svmp.errors.KeywordError: predict has no option 'random_seed'; did you mean 'seed'?
    """
    known = list(inspect.signature(function).parameters)
    call = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        check_keywords(call, options, known)
        return function(*args, **options)

    return checked


def check_keywords(call: str, options: Collection[str], known: Collection[str]) -> None:
    """Refuse names that are not known, with the one that was meant, or with all that there are."""
    for name in options:
        if name not in known:
            there = [k for k in known if k != "self"]
            same = OTHER_KEYWORDS.get(name)
            near = [same] if same in there else get_close_matches(name, there, n=1)
            meant = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(there)}"
            raise KeywordError(f"{call} has no option '{name}'; {meant}")
