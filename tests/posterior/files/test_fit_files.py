"""Saving and loading fits; other files are refused with the reason."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import svmp
from tests.inference.models import every_family


@pytest.fixture(scope="module")
def fit() -> svmp.Fit:
    return svmp.fit(every_family(), svmp.FullVB())


@pytest.fixture
def path(fit: svmp.Fit, tmp_path: Path) -> Path:
    path = tmp_path / "fit.svmp"
    fit.save(path)
    return path


def test_all_fields_are_loaded(fit: svmp.Fit, path: Path) -> None:
    again = svmp.load(path)
    assert again.status == fit.status
    assert again.bound_terms == fit.bound_terms
    assert again.bound == fit.bound
    assert list(again.posteriors) == list(fit.posteriors)
    assert (again.iterations, again.accesses) == (fit.iterations, fit.accesses)
    assert again.seconds == fit.seconds
    assert str(again) == str(fit)
    assert again.trace.columns == fit.trace.columns
    for column in fit.trace.columns:
        assert again.trace[column].dtype == fit.trace[column].dtype
        np.testing.assert_array_equal(again.trace[column], fit.trace[column])
    for name, q in fit.posteriors.items():
        back = again.posteriors[name]
        assert (back.dims, back.plate, type(back.family)) == (q.dims, q.plate, type(q.family))
        np.testing.assert_array_equal(back.natural, q.natural)
        np.testing.assert_array_equal(back.mean, q.mean)
        np.testing.assert_array_equal(back.var, q.var)
        np.testing.assert_array_equal(back.entropy(), q.entropy())
        np.testing.assert_array_equal(back.draw(3, seed=1), q.draw(3, seed=1))
        assert back.parameters.keys() == q.parameters.keys()


def test_loaded_fit_can_be_the_start_of_another(path: Path) -> None:
    again = svmp.load(path)
    more = svmp.fit(every_family(), svmp.FullVB(), init=again.posteriors, max_sweeps=1)
    assert again.bound <= more.bound <= again.bound + 1e-4


def test_saving_a_loaded_fit_gives_the_same_file(path: Path, tmp_path: Path) -> None:
    svmp.load(path).save(tmp_path / "again.svmp")
    assert (tmp_path / "again.svmp").read_bytes() == path.read_bytes()


def test_paths_are_strings_or_paths(fit: svmp.Fit, tmp_path: Path) -> None:
    fit.save(str(tmp_path / "a"))
    assert svmp.load(str(tmp_path / "a")).bound == fit.bound
    assert svmp.load(tmp_path / "a").bound == fit.bound


def test_saving_leaves_no_other_files(path: Path) -> None:
    assert [p.name for p in path.parent.iterdir()] == ["fit.svmp"]


def test_saving_replaces_an_older_file(fit: svmp.Fit, path: Path) -> None:
    path.write_text("old")
    fit.save(path)
    assert svmp.load(path).bound == fit.bound


@pytest.mark.parametrize("name", ["a/b", "日本 🎲", "with space", 'qu"ote', "natural/x", "x" * 300])
def test_any_name_can_be_saved(tmp_path: Path, name: str) -> None:
    with svmp.Model(coords={f"d {name}": 2}) as model:
        u = svmp.Normal(name, mu=0, tau=1, dims=f"d {name}")
        svmp.Normal("x", mu=u[[0, 1]], tau=1, observed=[1.0, 2.0])
    svmp.fit(model, svmp.FullVB()).save(tmp_path / "f")
    again = svmp.load(tmp_path / "f")
    np.testing.assert_allclose(again.mean(name), [0.5, 1.0])
    assert again[name].dims == (f"d {name}",)


def test_empty_plates_can_be_saved(tmp_path: Path) -> None:
    with svmp.Model(coords={"none": 0, "k": 2}) as model:
        svmp.Normal("empty", mu=0, tau=1, dims="none")
        svmp.Dirichlet("shares", a=1, dims=("none", "k"))
        u = svmp.Normal("u", mu=0, tau=1)
        svmp.Normal("x", mu=u, tau=1, observed=[1.0])
    svmp.fit(model, svmp.FullVB(), max_sweeps=3).save(tmp_path / "f")
    again = svmp.load(tmp_path / "f")
    assert again.mean("empty").shape == (0,)
    assert again.mean("shares").shape == (0, 2)


# --- files that are not a fit ---------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(svmp.FileError) as caught:
        svmp.load(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "nowhere")


def test_folder(tmp_path: Path) -> None:
    refused(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"not a fit at all\n" * 20, b"\x00" * 64, b"\xff" * 64]
)
def test_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    refused(tmp_path / "f")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_truncated_file(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path)


def test_file_with_trailing_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")
    refused(path)


def test_damaged_header(path: Path) -> None:
    """A changed byte of the header is detected, or changes only a name."""
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    for place in range(0, 8 + size, max(1, size // 60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        with contextlib.suppress(svmp.FileError):
            svmp.load(path)


def test_safetensors_file_of_another_program(tmp_path: Path) -> None:
    save_file({"weights": np.ones(3)}, tmp_path / "f")
    assert "not one that svmp saved" in refused(tmp_path / "f")
    save_file({"weights": np.ones(3)}, tmp_path / "f", metadata={"format": "pt"})
    assert "not one that svmp saved" in refused(tmp_path / "f")


def rewritten(path: Path, change: Any) -> Path:
    """Rewrite the file with a changed description or changed tensors."""
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["svmp"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    found = change(about, tensors)
    about = about if found is None else found
    save_file(
        tensors, path, metadata={"svmp": about if isinstance(about, str) else json.dumps(about)}
    )
    return path


def test_rewritten_file_is_valid(path: Path, fit: svmp.Fit) -> None:
    assert svmp.load(rewritten(path, lambda about, tensors: None)).bound == fit.bound


def test_newer_format(path: Path) -> None:
    rewritten(path, lambda about, tensors: about.update(format=999))
    assert "newer" in refused(path)


def _drop(key: str) -> Any:
    return lambda about, tensors: about.pop(key) and None


def _family(value: Any) -> Any:
    return lambda about, tensors: about["variables"]["gamma"].update(family=value)


def _tensor(name: str, value: Any) -> Any:
    return lambda about, tensors: tensors.update({name: value})


WRONG = {
    "not JSON": lambda about, tensors: "{",
    "a number": lambda about, tensors: "3",
    "a list": lambda about, tensors: "[]",
    "an empty object": lambda about, tensors: "{}",
    "null": lambda about, tensors: "null",
    "no format": _drop("format"),
    "format a string": lambda about, tensors: about.update(format="one"),
    "no status": _drop("status"),
    "another status": lambda about, tensors: about.update(status="fine"),
    "a bound of words": lambda about, tensors: about["bound_terms"].update(gamma="low"),
    "no columns": _drop("columns"),
    "a column too many": lambda about, tensors: about["columns"].append("huh"),
    "a column too short": _tensor("trace/bound", np.zeros(1)),
    "a column of columns": _tensor("trace/bound", np.zeros((1, 1))),
    "a column of bytes": _tensor("trace/bound", np.zeros(1, dtype=np.uint8)),
    "a negative plate": lambda about, tensors: about["variables"]["gamma"].update(plate=[-2]),
    "a plate too many": lambda about, tensors: about["variables"]["gamma"].update(plate=[2, 1]),
    "dims of numbers": lambda about, tensors: about["variables"]["gamma"].update(dims=[1]),
    "another length": lambda about, tensors: about["variables"]["vector"].update(length=3),
    "no trials": lambda about, tensors: tensors.pop("trials/binomial") is None or None,
    "half a trial": _tensor("trials/binomial", np.array([0.5, 1.0])),
    "trials of one": _tensor("trials/binomial", np.array([4.0])),
    "nested too deeply": lambda about, tensors: "[" * 100_000,
    "no bound": _drop("bound_terms"),
    "no variables": _drop("variables"),
    "variables a list": lambda about, tensors: about.update(variables=[]),
    "unknown family": _family("Cauchy"),
    "a family that is a module": _family("gamma"),
    "a family that is a number": _family(3),
    "no family": lambda about, tensors: about["variables"]["gamma"].pop("family") and None,
    "no dims": lambda about, tensors: about["variables"]["gamma"].pop("dims") and None,
    "no tensor": lambda about, tensors: tensors.pop("natural/gamma") is None or None,
    "a tensor too short": _tensor("natural/gamma", np.array([[-1.0, 1.0]])),
    "a tensor too narrow": _tensor("natural/gamma", np.array([[-1.0], [-1.0]])),
    "a tensor of integers": _tensor("natural/gamma", np.array([[-1, 1], [-1, 1]])),
    "not a distribution": _tensor("natural/gamma", np.array([[1.0, 1.0], [-1.0, 1.0]])),
    "not numbers": _tensor("natural/gamma", np.full((2, 2), np.nan)),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_invalid_contents_are_refused(path: Path, change: Any) -> None:
    refused(rewritten(path, change))


def test_saving_to_an_impossible_path(fit: svmp.Fit, tmp_path: Path) -> None:
    with pytest.raises(svmp.FileError, match="nowhere"):
        fit.save(tmp_path / "nowhere" / "fit.svmp")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(svmp.FileError, match="folder"):
        fit.save(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_saving_without_permission(fit: svmp.Fit, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(svmp.FileError, match="fit"):
        fit.save(tmp_path / "fit.svmp")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "size"), [("BF16", 4), ("F8_E4M3", 2)])
@pytest.mark.parametrize("about", [{}, {"svmp": "{}"}], ids=["foreign", "svmp"])
def test_dtypes_that_numpy_lacks(
    tmp_path: Path, kind: str, size: int, about: dict[str, str]
) -> None:
    weights = {"dtype": kind, "shape": [2], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": about, "weights": weights}).encode()
    (tmp_path / "f").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * size)
    assert "that svmp saved" in refused(tmp_path / "f")
