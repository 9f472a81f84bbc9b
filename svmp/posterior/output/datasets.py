"""`fit.to_xarray()` and `fit.to_arviz()`: posteriors with their dims and labels."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from svmp.errors import ModelError, SvmpError
from svmp.families.family import Array
from svmp.posterior.record.kinds import kind_of
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import Dim, checked_names, dims_of

STATISTIC, DRAW, CHAIN, EVALUATION = "statistic", "draw", "chain", "evaluation"
OBSERVED = "observed_data"
"""The group without draws."""
FIRST_WITH_TREES = 1
"""First version of ArviZ that works on a DataTree."""


def _xarray() -> Any:
    try:
        import xarray
    except ModuleNotFoundError:
        raise SvmpError('this needs xarray: pip install "svmp[xarray]"') from None
    return xarray


def means_and_sds(fit: RunRecord, names: str | Collection[str] | None) -> Any:
    """Return a Dataset with mean and sd of each variable, along the dim `statistic`."""
    statistic = Dim(STATISTIC, 2, ["mean", "sd"])
    arrays = {}
    for name in checked_names(fit, names):
        q = fit.posteriors[name]
        arrays[name] = [statistic, *dims_of(fit, q)], np.stack([q.mean, q.std])
    return _dataset(fit, arrays)


def draws_of(fit: RunRecord, draws: Mapping[str, Array], chains: bool = False) -> Any:
    """Return a Dataset of draws, along the dim `draw`, and one `chain` if asked for."""
    arrays = {}
    for name, values in draws.items():
        dims = dims_of(fit, fit.posteriors[name])[: values.ndim - 1]
        arrays[name] = dims, values
    return _dataset(fit, along_draws(arrays, chains))


def along_draws(
    arrays: Mapping[str, tuple[Sequence[Dim], Array]], chains: bool
) -> dict[str, tuple[Sequence[Dim], Array]]:
    """Add the dim `draw`, which arrays have first, and that of one `chain` if asked for."""
    found: dict[str, tuple[Sequence[Dim], Array]] = {}
    for name, (dims, values) in arrays.items():
        first = Dim(DRAW, len(values), None)
        found[name] = (
            ([Dim(CHAIN, 1, None), first, *dims], values[None])
            if chains
            else ([first, *dims], values)
        )
    return found


def _dataset(fit: RunRecord, arrays: Mapping[str, tuple[Sequence[Dim], Array]]) -> Any:
    """Return arrays with their dims as a Dataset.

    A Dataset has one name for a variable and for the labels of a dim: where both are the same, as
    of `school` along `school`, the dim is called `school_dim`.
    """
    xarray = _xarray()
    coords: dict[str, Any] = {}
    found = {}
    for name, (dims, values) in arrays.items():
        variables = {*fit.posteriors, *arrays}
        names = [f"{d.name}_dim" if d.name in variables else d.name for d in dims]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise ModelError(
                f"the dimension '{twice}' of '{name}' has the name of an axis of the result; "
                "rename it in the model"
            )
        coords |= {n: dim.values for n, dim in zip(names, dims, strict=True)}
        found[name] = names, values
    about = {"status": fit.status, "bound": fit.bound, "iterations": fit.iterations}
    about["covariances"] = kind_of(fit)
    return xarray.Dataset(found, coords=coords, attrs=about)


def to_arviz(
    fit: RunRecord,
    draws: Mapping[str, Array],
    groups: Mapping[str, Mapping[str, tuple[Sequence[Dim], Array]]],
) -> Any:
    """Return draws as the group `posterior` of ArviZ, other groups, and the trace of the run.

    That is a DataTree for ArviZ 1 and later, an InferenceData for earlier versions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import arviz
    except ModuleNotFoundError:
        raise SvmpError('this needs ArviZ: pip install "svmp[arviz]"') from None
    xarray = _xarray()
    found = {"posterior": draws_of(fit, draws, chains=True)}
    for name, arrays in groups.items():
        found[name] = _dataset(fit, arrays if name == OBSERVED else along_draws(arrays, True))
    found["trace"] = xarray.Dataset(
        {name: (EVALUATION, values) for name, values in fit.trace.to_dict().items()},
        coords={EVALUATION: np.arange(len(fit.trace))},
    )
    if int(str(arviz.__version__).split(".")[0]) < FIRST_WITH_TREES:
        return arviz.InferenceData(**found)
    return xarray.DataTree.from_dict(found)
