"""The parts that are in memory: the last few that were used, and the one that is needed next.

A part is loaded in the background while another one is processed. An exception of the reader is
raised where the part is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock

from svmp.errors import ModelError
from svmp.parts.context import Context, Job, Unit
from svmp.parts.heap import return_unused
from svmp.parts.held_out import held_out_variables
from svmp.parts.merging import merged, merged_observations
from svmp.parts.part import Part

_parts: OrderedDict[tuple[str, Unit], Future[Part | None]] = OrderedDict()
_lock = Lock()
_reader = ThreadPoolExecutor(1, thread_name_prefix="svmp-reader")


def loaded(context: Context, job: Job) -> Iterator[tuple[Unit, Part]]:
    """Yield the parts of a job in order, without those that have no rows."""
    following = [*job.units[1:], job.then]
    for unit, then in zip(job.units, following, strict=True):
        part = _request(context, unit)
        if then is not None and then != unit:
            _request(context, then)
        found = part.result()
        if found is not None:
            yield unit, found


def load_part(context: Context, number: int) -> Part:
    """Return one part that has rows, loaded here."""
    return next(part for _, part in loaded(context, Job(((number,),))))


def can_merge(context: Context, unit: Unit) -> bool:
    """Return whether parts can be put together; if so, they are loaded."""
    try:
        return _request(context, unit).result() is not None
    except ModelError:
        forget(context.token)
        return False


def _request(context: Context, unit: Unit) -> Future[Part | None]:
    """Return a part that is in memory or being loaded."""
    key = context.token, unit
    with _lock:
        if key in _parts and _failed(_parts[key]):
            del _parts[key]  # the file may have been mended
        if key not in _parts:
            _parts[key] = _reader.submit(copy_context().run, _load, context, unit)
        _parts.move_to_end(key)
        mine = [other for other in _parts if other[0] == context.token and other != key]
        late = max(len(mine) + 1 - max(context.resident, 2), 0)
        spare = [k for k in mine if len(unit) > 1 and len(k[1]) == 1 and k[1][0] in unit]
        for other in dict.fromkeys([*mine[:late], *spare]):
            if _parts[other].done():
                del _parts[other]
        return _parts[key]


def _failed(part: Future[Part | None]) -> bool:
    return part.done() and part.exception() is not None


def _load(context: Context, unit: Unit) -> Part | None:
    if context.resident < len(context.source):
        return_unused()
    models, held = [], []
    for number in unit:
        found = context.declared(number)
        if found is None:
            continue
        model, rows = found
        models.append(model)
        if context.held_out is not None:
            where = context.source.name(number)
            held.append(held_out_variables(context.held_out.of, rows, model, where))
    if len(unit) == 1:
        return Part.of(models[0], context, unit[0], *held) if models else None
    whole, values = merged(models, context.sharing), None
    if whole is not None and held:
        values = merged_observations(models, held, whole, context.sharing)
    if whole is None or (held and values is None):
        raise ModelError("these parts cannot be put together")
    return Part.of(whole, context, unit[0], values)


def forget(token: str) -> None:
    """Remove the parts of all contexts whose token begins so from memory."""
    with _lock:
        for key in [key for key in _parts if key[0].startswith(token)]:
            del _parts[key]
