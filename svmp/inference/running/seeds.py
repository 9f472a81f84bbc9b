"""Seeds: a whole number (reproducible), a Generator, or None for new random numbers."""

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
    """Return the random generator of a seed.

    None gives a new one each time. A whole number gives the same one each time, and different ones
    for different `stream` (names or whole numbers, such as that of a variable). A Generator is
    returned as it is.

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
    """Return a seed as a whole number below 2**63, which fits into compiled loops.

    It is drawn from a Generator, new for None, and hashed from a larger number.

    >>> whole_seed(7)
    7
    """
    check_seed(seed)
    if seed is None or isinstance(seed, Generator) or seed >= LARGEST:
        return int(generator(seed).integers(LARGEST))
    return int(seed)


def check_seed(seed: Any) -> None:
    """Refuse an invalid seed."""
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
