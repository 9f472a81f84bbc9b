"""Reading checkpoints: their contents are declared here, and all of them are checked.

`ABOUT` declares the description, `Saved.declared` the arrays, whose shapes and domains follow from
the network. If a file is damaged, the previous one is read; one of another run is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from svmp.errors import FileError, ModelError
from svmp.inference.checkpoints import joint_files
from svmp.inference.checkpoints.checkpoint import FORMAT, KEY, WHAT, before
from svmp.inference.checkpoints.recipes import check_recipe, make, recipe
from svmp.inference.checkpoints.state_schema import DESCRIPTION, declared_tensors, restore_state
from svmp.inference.checkpoints.trace_schema import trace_tensors
from svmp.inference.methods import Method
from svmp.inference.methods.method import check_order
from svmp.inference.program.joint_blocks import Joint
from svmp.inference.running.held_out import Scorer
from svmp.inference.running.problem import Problem
from svmp.inference.running.run import global_names
from svmp.inference.state.approach import Approach
from svmp.inference.state.state import State
from svmp.inference.steps import Policy
from svmp.inference.trace import HELD_OUT
from svmp.inference.updaters.joint_block import JointBlock
from svmp.saving.schema import (
    ANY,
    Tensor,
    Tensors,
    check_format,
    check_tensors,
    dict_of,
    list_of,
    need,
    number,
    optional,
    read_tensors,
    record,
    text,
    truth,
    whole,
)
from svmp.writing import as_path

SETTINGS = {
    "method": check_recipe,
    "steps": check_recipe,
    "seed": whole(high=ANY),
    "tol": optional(number(0, infinite=True)),
    "persistent": truth,
    "kernels": truth,
    "held_out": optional(text),
    "joint": list_of(list_of(text)),
}
ABOUT = record(
    {
        "format": whole(1, FORMAT),
        **DESCRIPTION,
        "settings": record(SETTINGS),
        "model": dict_of(dict_of(text)),
    }
)


class MismatchError(FileError):
    """A valid checkpoint, but not of this run."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read and checked.

    Attributes
    ----------
    path
        The file that was read: the one asked for, or the previous one.
    about, arrays
        Its description and its arrays.
    method, policy
        The algorithm and the step policy, from the file unless they were given.
    """

    path: Path
    about: dict[str, Any]
    arrays: Tensors
    method: Method
    policy: Policy

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        problem: Problem,
        method: Method | None = None,
        policy: Policy | None = None,
    ) -> Saved:
        """Read a checkpoint of a problem or, if it is damaged, the previous one."""
        target, troubles = as_path(path, "resume"), []
        older = [before(target)] if os.path.lexists(before(target)) else []
        for candidate in (target, *older):
            try:
                return cls._read(candidate, problem, method, policy)
            except MismatchError as error:
                raise FileError(f"{candidate}: {error}") from None
            except FileError as error:
                troubles.append(f"{candidate}: {error}")
        raise FileError("; ".join(troubles))

    @classmethod
    def _read(
        cls, path: Path, problem: Problem, method: Method | None, policy: Policy | None
    ) -> Saved:
        found, arrays = read_tensors(path, KEY, f"{WHAT} of svmp")
        check_format(found, FORMAT, f"{WHAT} of svmp")
        about = ABOUT("description", upgraded(found))
        check_model(about["model"], problem.description)
        made = about["settings"]
        method = resolved("method", method, made["method"])
        saved = cls(path, about, arrays, method, resolved("steps", policy, made["steps"]))
        try:
            check_order(problem.network, method.order)
            check_tensors(arrays, saved.declared(problem))
        except ModelError as error:  # of an order or a dim that the network does not have
            raise FileError(f"damaged: {error}") from None
        scored = HELD_OUT in about["columns"] if about["columns"] else made["held_out"] is not None
        need(scored == (made["held_out"] is not None), "damaged: the trace has other columns")
        known = about["bound_terms"].keys() <= about["model"].keys()
        need(known, "damaged: the bound has a term of an unknown variable")
        return saved

    def declared(self, problem: Problem) -> dict[str, Tensor]:
        """Declare the arrays of the file."""
        network, hidden = problem.network, problem.network.hidden
        families = {n: (v.size, v.family) for n, v in hidden.items() if n in self.stored}
        names, keeps_sums = global_names(network, self.method, families), self.method.keeps_sums
        sound = not self.policy.is_safe(self.method)
        if keeps_sums:
            sound = sound or np.isfinite(self.about["counters"]["sweep_bound"])
        chains = {n: c for n, c in network.chains.items() if n in families}
        found = declared_tensors(
            self.about,
            self.arrays,
            families,
            names,
            sound,
            keeps_sums,
            problem.natural_only,
            chains,
        )
        return found | trace_tensors(self.about["columns"], self.arrays)

    @property
    def stored(self) -> list[str]:
        """The variables whose q is in the file."""
        return [k.removeprefix("natural/") for k in self.arrays if k.startswith("natural/")]

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.about["settings"]["seed"])

    @property
    def tol(self) -> float | None:
        """The tolerance of the run; None if it is judged by what can be seen."""
        tol = self.about["settings"]["tol"]
        return None if tol is None else float(tol)

    @property
    def persistent(self) -> bool:
        """Whether the run goes on after a divergence."""
        return bool(self.about["settings"]["persistent"])

    @property
    def kernels(self) -> bool:
        """Whether the run used compiled loops, which round differently from plain code."""
        return bool(self.about["settings"]["kernels"])

    def check_held_out(self, held: Scorer | None) -> None:
        """Refuse other held-out values than those of the trace so far."""
        then = self.about["settings"]["held_out"]
        now = None if held is None else held.fingerprint
        if now != then:
            made = "without held_out" if then is None else "with other values in held_out"
            advice = "resume without" if then is None else "give the same again to resume"
            raise FileError(f"{self.path}: made {made}; {advice}")

    def check_joint(self, given: Sequence[JointBlock] | None) -> Joint | None:
        """Return the joint blocks of the run; refuse others that were given."""
        joint = [tuple(names) for names in self.about["settings"]["joint"]]
        if given is not None and [block.names for block in given] != joint:
            made = f"with joint={joint}" if joint else "without joint="
            raise FileError(f"{self.path}: made {made}; give no other to resume")
        return joint or None

    def restore_joint(self, state: State, blocks: Sequence[JointBlock]) -> None:
        """Restore the covariances of joint blocks; the marginals are restored already."""
        hidden = {n: block.network.hidden[n] for block in blocks for n in block.names}
        families = {n: (v.size, v.family) for n, v in hidden.items()}
        about = self.about["blocks"]
        try:
            known = joint_files.unpack(about, self.arrays, families, state.q.natural)
            names, now = [b.names for b in known], [b.names for b in blocks]
            need(not names or names == now, "damaged: other joint blocks")
        except FileError as error:
            raise FileError(f"{self.path}: {error}") from None
        state.q.blocks = tuple(
            block.restored(saved.covariance.precision, saved.scale, saved.barren, state.q)
            for block, saved in zip(blocks, known, strict=False)
        )

    def restore(self, state: State) -> None:
        """Restore a state from the checkpoint."""
        missing = [name for name in state.q.natural if name not in self.stored]
        need(not missing, f"{self.path}: damaged: there is no q of {missing}")
        try:
            restore_state(state, self.about, self.arrays)
            check_approach(state.approach)
        except FileError as error:
            raise FileError(f"{self.path}: {error}") from None


def upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a file in the newest format.

    The first had no sums by part, the second no over-relaxation, the third no joint blocks, and the
    fourth no readings of what can be seen.
    """
    if "approach" not in about:
        begun = {k: v for k, v in asdict(Approach()).items() if k != "last"}
        about = {**about, "approach": begun}
    if isinstance(about.get("settings"), dict) and "blocks" not in about:
        about = {**about, "blocks": [], "settings": {"joint": [], **about["settings"]}}
    if about["format"] >= FORMAT or not isinstance(about.get("counters"), dict):
        return about
    added: dict[str, Any] = {"omega": 1.0, "relaxed_change": np.nan}
    if about["format"] == 1:
        added |= {"exact": 0, "sweep_bound": -np.inf}
    return about | {"counters": added | about["counters"]}


def check_approach(approach: Approach) -> None:
    """Refuse readings that do not belong together."""
    counts = {len(approach.lengths), len(approach.gains), *map(len, approach.moved.values())}
    names = approach.moved.keys() == approach.last.keys() or not approach.lengths
    order = approach.near <= approach.read <= approach.sweeps
    need(len(counts) == 1 and names and order, "damaged: the readings of q do not agree")


def check_model(then: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> None:
    """Refuse a checkpoint of another model or of other data, and say what differs."""
    for name in {**then, **now}:
        if name not in now or name not in then:
            place = "the checkpoint" if name not in now else "the model"
            raise MismatchError(f"only {place} has a variable '{name:.60}'")
        for aspect in {**now[name], **then[name]}:
            was, value = then[name].get(aspect), now[name].get(aspect)
            if was != value:
                raise MismatchError(
                    f"{aspect} of '{name:.60}' differs: {was!s:.200} in the checkpoint, "
                    f"{value!s:.200} in the model"
                )


def resolved(what: str, given: Any, saved: Any) -> Any:
    """Return an algorithm or a step policy: the given one, or what the checkpoint was made with."""
    if given is None:
        if isinstance(saved, str):
            raise MismatchError(f"made with {what}={saved:.80}; give the same again to resume")
        return make(saved)
    now = recipe(given)
    if what == "method" and isinstance(now, dict) and isinstance(saved, dict):
        same = now["class"] == saved["class"]
        same = same and now["fields"].get("over") == saved["fields"].get("over")
        if not same:
            raise MismatchError(f"made with method={make(saved)!r:.80}; give no other to resume")
    return given
