"""The schema of a `State` in a checkpoint: one table of its numbers, one of its arrays.

Both writing and reading use these tables, so that everything that is written is checked when it is
read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from svmp.families.family import Family
from svmp.inference.acceleration.extrapolation import DEPTH
from svmp.inference.acceleration.relaxation import is_gaussian
from svmp.inference.checkpoints import joint_files
from svmp.inference.checkpoints.trace_schema import trace_names
from svmp.inference.state.approach import KEPT, Approach
from svmp.inference.state.state import MOST_ROLLBACKS, State
from svmp.inference.state.window import SAMPLES
from svmp.inference.trace import Trace
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.saving.schema import (
    Check,
    Tensor,
    Tensors,
    anything,
    dict_of,
    entries,
    finite,
    list_of,
    moments_of,
    need,
    number,
    proper,
    record,
    whole,
)


@dataclass(frozen=True)
class Scalar:
    """A number of a state: its attribute path, and its check in a file."""

    path: str
    check: Check

    def get(self, state: State) -> Any:
        """Return the number."""
        return attrgetter(self.path)(state)

    def set(self, state: State, value: Any) -> None:
        """Set the number."""
        *owner, name = self.path.split(".")
        setattr(attrgetter(".".join(owner))(state) if owner else state, name, value)


COUNTERS = {
    "iteration": Scalar("iteration", whole()),
    "accesses": Scalar("accesses", whole()),
    "rollbacks": Scalar("safety.rollbacks", whole(high=MOST_ROLLBACKS)),
    "damping": Scalar("safety.damping", number(2.0**-MOST_ROLLBACKS, 1)),
    # NaN after a rollback.
    "moved": Scalar("window.moved", number(0, infinite=True, nan=True)),
    "bound_at": Scalar("measured.accesses", whole(-1)),
    "bound_iteration": Scalar("measured.iteration", whole(-1)),
    "settling": Scalar("measured.local_accesses", whole()),
    "exact": Scalar("memo.exact", whole(high=2**MOST_ROLLBACKS)),
    "sweep_bound": Scalar("memo.bound", number(infinite=True)),
    "omega": Scalar("relaxation.omega", number(1, 2)),
    "relaxed_change": Scalar("relaxation.change", number(0, infinite=True, nan=True)),
}
DESCRIPTION: dict[str, Check] = {
    "counters": record({name: scalar.check for name, scalar in COUNTERS.items()}),
    "window": entries(number(0, 1), whole(high=SAMPLES)),
    "guard": entries(number(), number()),
    "bound_terms": dict_of(number()),
    "approach": record(
        {
            "sweeps": whole(),
            "read": whole(),
            "near": whole(),
            "remaining": number(0, infinite=True),
            "bound": number(infinite=True, nan=True),
            "lengths": list_of(whole(1), KEPT),
            "gains": list_of(number(infinite=True, nan=True), KEPT),
            "moved": dict_of(list_of(number(0, infinite=True), KEPT)),
        }
    ),
    "seconds": number(0),
    "columns": trace_names,
    "blocks": joint_files.BLOCKS,
}
"""The entries of the description that belong to the state."""
ARRAYS = {
    "natural": "q.natural",
    "moments": "q.moments",
    "total": "window.total",
    "last": "window.last",
    "last_moments": "window.last_moments",
    "gradient": "statistics.gradient",
    "square": "statistics.square",
    "before": "relaxation.before",
    "history": "relaxation.history",
    "sound": "safety.sound.natural",
    "sound_moments": "safety.sound.moments",
}
"""By kind of array, the attribute path of its dict; natural parameters before their moments."""


JOINTS = {"joint": "q.joint", "sound_joint": "safety.sound.joint"}
"""By kind of array, the attribute path of the arrays by chain that determine its joint q."""
SEEN = "seen"
"""Kind of the arrays of the last reading of what can be seen."""
SUMS = "sums"
"""Kind of the arrays of sums by part; for one part, followed by its number."""


def describe_state(state: State, seconds: float) -> dict[str, Any]:
    """Return the numbers of a state, as JSON."""
    return {
        "counters": {name: scalar.get(state) for name, scalar in COUNTERS.items()},
        "window": [state.window.clock, state.window.count],
        "guard": state.safety.start.tolist(),
        "bound_terms": state.measured.terms,
        "approach": {
            k: v for k, v in asdict(replace(state.approach, last={})).items() if k != "last"
        },
        "seconds": seconds,
        "columns": state.trace.columns,
        "blocks": joint_files.pack(state.q.blocks)[0],
    }


def state_tensors(state: State) -> Tensors:
    """Return the arrays of a state, by kind and variable."""
    found: Tensors = {}
    for kind, path in ARRAYS.items():
        if path.startswith("safety") and state.safety.sound is None:
            continue
        for name, array in attrgetter(path)(state).items():
            if name in state.q.natural:  # moments of observed parents are in the model
                found[f"{kind}/{name}"] = np.ascontiguousarray(array)
    for kind, path in JOINTS.items():
        if path.startswith("safety") and state.safety.sound is None:
            continue
        for name, arrays in attrgetter(path)(state).items():
            for key, array in arrays.items():
                found[f"{kind}-{key}/{name}"] = np.ascontiguousarray(array)
    for name, sums in state.memo.sums.items():
        for part, array in enumerate(sums.parts):
            if array is not None:
                found[f"{SUMS}{part}/{name}"] = np.ascontiguousarray(array)
        found[f"{SUMS}/{name}"] = sums.total
    found |= joint_files.pack(state.q.blocks)[1]
    found |= {f"{SEEN}/{name}": seen for name, seen in state.approach.last.items()}
    return found | {f"trace/{k}": v for k, v in state.trace.to_dict().items()}


def declared_tensors(
    about: Mapping[str, Any],
    arrays: Tensors,
    families: Mapping[str, tuple[int, Family]],
    globals_: Collection[str],
    keeps_sound: bool,
    keeps_sums: bool,
    natural_only: Collection[str] = (),
    chains: Mapping[str, Chain] | None = None,
) -> dict[str, Tensor]:
    """Declare the arrays of a file.

    Parameters
    ----------
    about, arrays
        The description and the arrays of the file.
    families
        By stored variable, its number of elements and its family.
    globals_
        Variables that the convergence criterion averages.
    keeps_sound
        Whether there is a sound q to return to.
    keeps_sums
        Whether there are sums by part; `restore_state` checks which.
    natural_only
        Variables whose moments are not stored.
    chains
        The densities of stored chains.
    """
    found: dict[str, Tensor] = joint_files.declared(about["blocks"])

    def declare(kind: str, moments: str, names: Collection[str]) -> None:
        for name in names:
            size, family = families[name]
            shape = (size, family.size)
            found[f"{kind}/{name}"] = Tensor(shape, proper(family))
            if name not in natural_only:
                check = moments_of(family, arrays, f"{kind}/{name}")
                found[f"{moments}/{name}"] = Tensor(shape, check)

    declare("natural", "moments", families)
    declare("last", "last_moments", globals_)
    if keeps_sound:
        declare("sound", "sound_moments", families)
    for name, chain in (chains or {}).items():
        for kind in ("joint", "sound_joint") if keeps_sound else ("joint",):
            found |= joint_tensors(kind, name, chain, arrays)
    count = about["window"][1]
    for name in globals_ if count else ():
        size, family = families[name]
        found[f"total/{name}"] = Tensor((size, family.size), proper(family, count))
    lengths = [len(array) for key, array in arrays.items() if key.startswith("history/")]
    for name, (size, family) in families.items():
        for kind in ("gradient", "square"):  # NaN where there is no gradient yet
            if f"{kind}/{name}" in arrays:
                found[f"{kind}/{name}"] = Tensor((size, family.size), anything)
        moved = is_gaussian(family) or family.precision == "number"
        if moved and f"before/{name}" in arrays:
            entries = entries_of(family) if is_gaussian(family) else 1
            found[f"before/{name}"] = Tensor((size, entries), finite)
            if lengths:  # all means have the same number of sweeps
                shape = (min(*lengths, DEPTH), 2, size * entries)
                found[f"history/{name}"] = Tensor(shape, finite)
    for key, array in arrays.items():
        kept = keeps_sums and re.match(SUMS + r"[0-9]*/", key)
        if kept or key.startswith(f"{SEEN}/"):
            found[key] = Tensor(array.shape, finite)
    return found


def joint_tensors(kind: str, name: str, chain: Chain, arrays: Tensors) -> dict[str, Tensor]:
    """Declare the arrays that determine the joint q of a chain."""
    own = {k: arrays[key] for k, key in joint_keys(kind, name, arrays).items()}
    return {
        f"{kind}-{k}/{name}": Tensor(shape, chain.array_trouble(k, own), (dtype,))
        for k, (shape, dtype) in chain.declared_arrays(own).items()
    }


def joint_keys(kind: str, name: str, arrays: Tensors) -> dict[str, str]:
    """Return by array of the joint q of a chain its name in a file."""
    start, end = f"{kind}-", f"/{name}"
    keys = [key for key in arrays if key.startswith(start) and key.endswith(end)]
    found = {key[len(start) : -len(end)]: key for key in keys}
    return {k: key for k, key in found.items() if "/" not in k}


def entries_of(family: Family) -> int:
    """Return the number of entries of a Normal or MvNormal, which has d + d^2 parameters."""
    return (math.isqrt(1 + 4 * family.size) - 1) // 2


def restore_state(state: State, about: Mapping[str, Any], arrays: Tensors) -> None:
    """Restore a state; arrays that the file does not have stay as they are."""

    def of(kind: str) -> dict[str, np.ndarray]:
        start = len(kind) + 1
        return {k[start:]: v.copy() for k, v in arrays.items() if k.startswith(kind + "/")}

    for name, scalar in COUNTERS.items():
        scalar.set(state, about["counters"][name])
    state.window.clock, state.window.count = about["window"]
    state.safety.start = np.array(about["guard"], dtype=np.float64)
    state.measured.terms = dict(about["bound_terms"])
    state.seconds = about["seconds"]
    columns = of("trace")
    state.trace = Trace({name: columns[name].tolist() for name in about["columns"]})
    if of("sound"):
        q = state.q
        state.safety.sound = Beliefs({}, dict(q.moments), {}, q.implicit, q.row_moments)
        state.safety.sound.joint = {name: {} for name in q.joint}
    for kind, path in ARRAYS.items():
        if state.safety.sound is not None or not path.startswith("safety"):
            attrgetter(path)(state).update(of(kind))
    for kind, path in JOINTS.items():
        if state.safety.sound is not None or not path.startswith("safety"):
            for name, joint in attrgetter(path)(state).items():
                keys = joint_keys(kind, name, arrays)
                joint.clear()
                joint.update({k: arrays[key].copy() for k, key in keys.items()})
    restore_sums(state, arrays)
    state.approach = Approach(**about["approach"], last=of(SEEN))
    kept = state.safety.sound is not None or state.memo.bound == -math.inf
    need(kept, "damaged: there is a bound of the last sweep over parts, but not its q")
    state.q.version += 1


def restore_sums(state: State, arrays: Tensors) -> None:
    """Restore the sums by part; refuse those that do not belong to the run."""
    left = {key for key in arrays if re.match(SUMS + r"[0-9]*/", key)}

    def take(key: str, shape: tuple[int, ...]) -> np.ndarray:
        need(key in left, f"damaged: there is no array {key!r:.60}")
        is_as = f"damaged: {key!r:.60} is {arrays[key].shape} instead of {shape}"
        need(arrays[key].shape == shape, f"{is_as:.200}")
        left.remove(key)
        return arrays[key].copy()

    for name, sums in state.memo.sums.items():
        sums.total = take(f"{SUMS}/{name}", sums.total.shape)
        for part in range(len(sums.parts)):
            key = f"{SUMS}{part}/{name}"
            sums.parts[part] = take(key, sums.shape(part)) if key in left else None
        exact = state.memo.exact > 0 and state.iteration < len(sums.parts)
        visited = 0 if exact else min(state.iteration, len(sums.parts))
        need(len(sums.seen) == visited, f"damaged: there are sums of {len(sums.seen)} parts only")
    need(not left, "damaged: there are sums of other parts than those of the run")
