"""The parts that are in memory: the last few that were used, and the one that is needed next.

A part is loaded in the background while another is computed with. An exception of the reader is
raised where the part is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from svmp.parts.context import Context, Job, declared
from svmp.parts.heap import return_unused
from svmp.parts.part import Part

_parts: OrderedDict[tuple[str, int], Future[Part | None]] = OrderedDict()
_lock = Lock()
_reader = ThreadPoolExecutor(1, thread_name_prefix="svmp-reader")


def loaded(context: Context, job: Job) -> Iterator[tuple[int, Part]]:
    """Yield the parts of a job in order, without those that have no rows."""
    following = [*job.numbers[1:], job.then]
    for number, then in zip(job.numbers, following, strict=True):
        part = _request(context, number)
        if then is not None and then != number:
            _request(context, then)
        found = part.result()
        if found is not None:
            yield number, found


def _request(context: Context, number: int) -> Future[Part | None]:
    """Return a part that is in memory or being loaded."""
    key = context.token, number
    with _lock:
        if key in _parts and _failed(_parts[key]):
            del _parts[key]  # the file may have been mended
        if key not in _parts:
            _parts[key] = _reader.submit(_load, context, number)
        _parts.move_to_end(key)
        mine = [other for other in _parts if other[0] == context.token]
        for other in mine[: max(len(mine) - max(context.resident, 2), 0)]:
            if _parts[other].done():
                del _parts[other]
        return _parts[key]


def _failed(part: Future[Part | None]) -> bool:
    return part.done() and part.exception() is not None


def _load(context: Context, number: int) -> Part | None:
    if context.resident < len(context.source):
        return_unused()
    model = declared(context.declare, context.source, number)
    return None if model is None else Part.of(model, context, number)


def forget(token: str) -> None:
    """Remove the parts of all contexts whose token begins so from memory."""
    with _lock:
        for key in [key for key in _parts if key[0].startswith(token)]:
            del _parts[key]
