"""Labels survive saving; damaged ones are refused, and files without labels are read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import svmp
from svmp.posterior.files.fit_files import KEY, LATER

LABELS = {
    "text": ["a", "", "ü / x", "\n"],
    "int": [3, -5, 2**40, 0],
    "float": [0.5, -1e300, 2.0, 3],
    "date": [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)],
    "time": [
        datetime(2024, 2, 29, 23, 59, 59, 999999),
        datetime(1, 1, 1),
        datetime(1970, 1, 1),
        datetime(9999, 12, 31, 23),
    ],
    "json": [("a", 1, (True, 0.5)), date(2024, 2, 29), datetime(1, 1, 1, tzinfo=UTC), 2**70],
}


def fitted(labels):
    with svmp.Model(coords={"shop": labels}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop")
        svmp.Poisson("count", mu=rate[[0, 1]], observed=[3, 4])
    return svmp.fit(model)


def about(path):
    with safe_open(path, "numpy") as file:
        return json.loads(file.metadata()[KEY])


@pytest.mark.parametrize("kind", LABELS)
def test_labels_survive_saving(kind, tmp_path):
    fit = fitted(LABELS[kind])
    fit.save(tmp_path / "fit.svmp")
    assert about(tmp_path / "fit.svmp")["coords"]["shop"]["kind"] == kind
    loaded = svmp.load(tmp_path / "fit.svmp")
    assert loaded.coords["shop"] == LABELS[kind]
    assert loaded.parents == {"rate": []}


@pytest.mark.parametrize("labels", [[1j, 2j], [frozenset({1}), "a"]], ids=str)
def test_other_labels_are_saved_as_a_size(labels, tmp_path):
    fit = fitted(labels)
    fit.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp").coords == {"shop": 2}


def test_files_without_labels_are_read_and_updated(tmp_path):
    with svmp.Model(coords={"shop": 2}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop")
        svmp.Poisson("count", mu=rate[[0, 1]], observed=[3, 4])
    path = tmp_path / "fit.svmp"
    svmp.fit(model).save(path)
    old = {key: value for key, value in about(path).items() if key not in LATER}
    save_file(load_file(path), path, {KEY: json.dumps({**old, "format": 1})})
    fit = svmp.load(path).update(model)
    np.testing.assert_allclose(fit["rate"].alpha, [8, 10])


def damage(tensors, description, what):
    coords = description["coords"]["shop"]
    if what == "bytes that are no text":
        tensors["labels/shop"] = np.full_like(tensors["labels/shop"], 255)
    elif what == "ends in disorder":
        tensors["label_ends/shop"] = tensors["label_ends/shop"][::-1].copy()
    elif what == "an end too far":
        tensors["label_ends/shop"] = tensors["label_ends/shop"] + 1
    elif what == "equal labels":
        tensors["labels/shop"] = np.zeros_like(tensors["labels/shop"])
    elif what == "no ends":
        del tensors["label_ends/shop"]
    elif what == "another size":
        coords["size"] = 3
    elif what == "another kind":
        coords["kind"] = "int"
    elif what == "an unknown kind":
        coords["kind"] = "object"
    elif what == "no coords":
        del description["coords"]


@pytest.mark.parametrize(
    "what",
    [
        "bytes that are no text",
        "ends in disorder",
        "an end too far",
        "equal labels",
        "no ends",
        "another size",
        "another kind",
        "an unknown kind",
        "no coords",
    ],
)
def test_damaged_labels_are_refused(what, tmp_path):
    path = tmp_path / "fit.svmp"
    fitted(["aa", "b"] if what == "ends in disorder" else ["a", "b"]).save(path)
    tensors, description = load_file(path), about(path)
    damage(tensors, description, what)
    save_file(tensors, path, {KEY: json.dumps(description)})
    with pytest.raises(svmp.FileError, match="damaged"):
        svmp.load(path)


@pytest.mark.parametrize("kind", ["date", "time"])
def test_dates_out_of_range_are_refused(kind, tmp_path):
    path = tmp_path / "fit.svmp"
    fitted(LABELS[kind]).save(path)
    tensors, description = load_file(path), about(path)
    tensors["labels/shop"] = np.array([2**62, 1, 2, 3])
    save_file(tensors, path, {KEY: json.dumps(description)})
    with pytest.raises(svmp.FileError, match="the labels of 'shop' make no sense"):
        svmp.load(path)
