"""Labels and keys that NumPy or Unicode have no value for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import svmp

KEYS = [0, 1, 0, 1]
Y = np.arange(4.0)


def fitted(labels: Any, keys: Any) -> svmp.Fit:
    with svmp.Model(coords={"g": labels, "r": 4}) as model:
        b = svmp.Normal("b", 0, 1, dims="g")
        svmp.Normal("y", b[keys], 1.0, dims="r", observed=Y)
    return svmp.fit(model)


PLAIN = fitted(2, np.array(KEYS))


@pytest.mark.parametrize("large", [[10**30, 10**31], [-(10**30), 3], [2**63, 2**64], [10**400, 7]])
def test_whole_numbers_of_any_size_are_labels(large: list[int], tmp_path: Path) -> None:
    given = [large[k] for k in KEYS]
    ways: tuple[Any, ...] = (
        given,
        np.array(given, dtype=object),
        svmp.data(given, dims="r"),
        svmp.data(np.array(given, dtype=object), dims="r"),
    )
    for keys in ways:
        fit = fitted(large, keys)
        np.testing.assert_array_equal(fit.mean("b"), PLAIN.mean("b"))
    fit.save(tmp_path / "fit.svmp")
    assert list(svmp.load(tmp_path / "fit.svmp").to_frame("b")["g"]) == large
    with pytest.raises(svmp.ModelError, match="no label"):
        fitted(large, [10**29, *given[1:]])


def test_whole_numbers_of_128_bits_are_keys_columns_and_observations() -> None:
    keys = pl.Series("g", KEYS, dtype=pl.Int128)
    for given in (keys, svmp.data(keys, dims="r")):
        np.testing.assert_array_equal(fitted(2, given).mean("b"), PLAIN.mean("b"))
    frame = pl.DataFrame({"g": keys, "y": Y})
    with svmp.Model(data=frame, coords={"g": "g"}) as model:
        b = svmp.Normal("b", 0, 1, dims="g")
        svmp.Normal("y", b[model.data["g"]], 1.0, observed="y", dims="row")
    np.testing.assert_array_equal(svmp.fit(model).mean("b"), PLAIN.mean("b"))
    counts = pl.Series(KEYS, dtype=pl.Int128)
    with svmp.Model(coords={"r": 4}) as model:
        rate = svmp.Gamma("rate", 1, 1)
        svmp.Poisson("x", rate, dims="r", observed=counts)
    assert svmp.fit(model).mean("rate") == pytest.approx(3 / 5)


def test_texts_that_are_no_unicode_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match=r"label 'a.ud800' at 1, whose lone surrogate"):
        svmp.Model(coords={"g": ["b", "a\ud800"]})
    with pytest.raises(svmp.ModelError, match="lone surrogate"):
        svmp.Model(coords={"g\udfff": 2})
    with svmp.Model(), pytest.raises(svmp.ModelError, match="lone surrogate"):
        svmp.Normal("a\ud800", 0, 1)
    assert svmp.Model(coords={"g": ["b", "a\U0001f600"]}).coords["g"] == ["b", "a\U0001f600"]
