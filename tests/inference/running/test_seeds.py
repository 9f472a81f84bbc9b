"""Seeds: whole numbers, generators and none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp import ModelError
from svmp.inference.running.seeds import generator, whole_seed


def test_no_seed_gives_new_random_numbers() -> None:
    assert generator(None).random(4).tolist() != generator(None).random(4).tolist()
    assert generator(None, "a").random(4).tolist() != generator(None, "a").random(4).tolist()
    assert whole_seed(None) != whole_seed(None)


def test_whole_number_gives_the_same_random_numbers() -> None:
    seeds: list[Any] = [0, 7, 2**80, np.int64(7), np.uint64(2**64 - 1)]
    for seed in seeds:
        assert (
            generator(seed, "a", 3).random(4).tolist() == generator(seed, "a", 3).random(4).tolist()
        )
        assert whole_seed(seed) == whole_seed(seed) < 2**63
    assert [whole_seed(seed) for seed in (0, 7, 2**63 - 1)] == [0, 7, 2**63 - 1]


def test_seed_without_a_stream_is_that_of_numpy() -> None:
    assert generator(7).random(4).tolist() == np.random.default_rng(7).random(4).tolist()


def test_streams_of_one_seed_are_independent() -> None:
    words: list[tuple[int | str, ...]] = [(), (0,), (0, 0), (1,), ("a",), ("b",), ("a", "b")]
    draws = np.array([generator(0, *stream).standard_normal(20_000) for stream in words])
    correlations = np.corrcoef(draws)[np.triu_indices(len(words), 1)]
    # The standard error of a correlation of independent numbers is 1 / sqrt(20,000) = 0.007.
    assert np.abs(correlations).max() < 5 * 0.0071


def test_streams_are_the_same_in_every_process() -> None:
    # Python's own hash of a string does; CRC-32 of "123456789" is the check value of its standard.
    sequence = np.random.SeedSequence(5, spawn_key=(0xCBF43926,))
    expected = np.random.default_rng(sequence).random(4)
    assert generator(5, "123456789").random(4).tolist() == expected.tolist()


def test_generator_is_used_as_it_is() -> None:
    rng = np.random.default_rng(3)
    assert generator(rng, "a") is rng
    assert whole_seed(rng) != whole_seed(rng)
    again = np.random.default_rng(3)
    assert whole_seed(np.random.default_rng(3)) == whole_seed(again)


@pytest.mark.parametrize("seed", [-1, True, 1.0, "1", [1], np.bool_(True), np.float64(2)])
def test_other_seeds_are_refused(seed: Any) -> None:
    for function in (generator, whole_seed):
        with pytest.raises(ModelError, match="seed must be a whole number of at least 0, a numpy"):
            function(seed)
