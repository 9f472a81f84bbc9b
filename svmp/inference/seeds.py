"""Seeds: a whole number for the same random numbers each time, a Generator, or None for new."""

from __future__ import annotations

import zlib
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence

from svmp.errors import ModelError
from svmp.network.validation import shown

Seed: TypeAlias = int | Generator | None
LARGEST = 2**63


def generator(seed: Seed, *stream: int | str) -> Generator:
    """Return the random numbers of a seed.

    None gives new ones each time. A whole number gives the same each time, others for each `stream`
    (names or whole numbers, as that of a variable). A Generator is used as it is, and moves on.

    >>> generator(7, "a").integers(100) == generator(7, "a").integers(100)
    np.True_
    >>> float(generator(7, "a").random()) == float(generator(7, "b").random())
    False
    """
    if seed is None:
        return np.random.default_rng()
    if isinstance(seed, Generator):
        return seed
    check_seed(seed)
    return np.random.default_rng(SeedSequence(int(seed), spawn_key=tuple(map(_key, stream))))


def whole_seed(seed: Seed) -> int:
    """Return a seed as a whole number below 2**63, which compiled loops can take.

    A Generator is drawn from, and None gives a new one. A larger number is hashed.

    >>> whole_seed(7)
    7
    """
    check_seed(seed)
    if seed is None or isinstance(seed, Generator) or seed >= LARGEST:
        return int(generator(seed).integers(LARGEST))
    return int(seed)


def check_seed(seed: Any) -> None:
    """Refuse what is not a seed."""
    if seed is None or isinstance(seed, Generator):
        return
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise ModelError(
            "seed must be a whole number of at least 0, a numpy.random.Generator or None, "
            f"not {shown(seed)}"
        )


def _key(word: int | str) -> int:
    """Return a word of a stream as a number, the same in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) if isinstance(word, str) else word
