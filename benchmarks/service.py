"""The service under load: mixed requests at a fixed rate from a second process, and a swap.

A model of a million generated ratings, K = 32, is served by `svmp recommend serve`. This process
sends recommend, predict, fold-in and similar in turn, each at its scheduled time, from which its
latency is counted, so that waiting for the service is included. Then the same is measured while the
model's folder is replaced, by a damaged one and by a valid one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, main

from svmp.datasets import netflix_shaped
from svmp.recommend import RatingModel
from svmp.recommend.files import folder_of

RATE, SECONDS, CONNECTIONS = 1_000, 30.0, 32
LATEST = 0.050
"""Seconds within which 99 of 100 requests should be answered."""
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Responses:
    """Latencies and errors of some requests."""

    took: list[float] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)

    def percentile(self, share: float) -> float:
        return float(np.quantile(self.took, share))


def bodies(model: RatingModel, count: int, seed: int = 0) -> list[tuple[str, Any]]:
    """Return requests of the four kinds in turn, about users and items drawn at random."""
    rng = np.random.default_rng(seed)
    users, items = model.users_.ids, model.items_.ids
    made: list[tuple[str, Any]] = []
    for _ in range(count // 4):
        user, item = int(rng.choice(users)), int(rng.choice(items))
        some = rng.choice(items, 30, replace=False).tolist()
        history = [{"item": i, "rating": float(rng.integers(1, 6))} for i in some]
        made += [
            ("/recommend", {"users": [user], "n": 10}),
            ("/predict", {"users": [user], "items": some[:20]}),
            ("/fold-in", {"history": history, "n": 10}),
            ("/similar", {"item": item, "n": 10}),
        ]
    return made


def encoded(path: str, body: Any, port: int) -> bytes:
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


async def load(port: int, requests: list[bytes], rate: float, seconds: float) -> Responses:
    """Send requests at a fixed rate, over persistent connections."""
    seen, began = Responses(), time.perf_counter() + 0.2

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for count in range(number, int(rate * seconds), CONNECTIONS):
            at = began + count / rate
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            try:
                writer.write(requests[count % len(requests)])
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
            except (OSError, asyncio.IncompleteReadError, IndexError) as error:
                seen.wrong[type(error).__name__] += 1
                return
            seen.took.append(time.perf_counter() - at)
            if not head.startswith(b"HTTP/1.1 200") or not body.startswith(b"{"):
                seen.wrong[head[9:12].decode()] += 1
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    await asyncio.gather(*map(connection, range(CONNECTIONS)))
    return seen


@contextmanager
def service(folder: Path) -> Iterator[tuple[int, int]]:
    """Serve a model in a separate process; yield its id and its port."""
    command = [sys.executable, "-m", "svmp", "recommend", "serve", folder]
    command += ["--port", "0"]
    path = os.pathsep.join(p for p in sys.path if p)
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address, "the service did not start"
        yield process.pid, int(address[1])
    finally:
        process.terminate()
        process.wait(30)


def cpu(pid: int) -> float:
    """Return the seconds of processor time of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK + sum(map(cpu, map(int, children)))


async def swapped(port: int, folder: Path, other: RatingModel, seconds: float) -> dict[str, Any]:
    """Replace the served model by a damaged one, and then by a valid one."""
    await asyncio.sleep(seconds / 4)
    draft = folder.with_name("damaged")
    shutil.copytree(folder, draft)
    arrays = folder_of(draft) / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-1000])
    folder.rename(folder.with_name("sound"))
    draft.rename(folder)
    await asyncio.sleep(seconds / 4)
    await asyncio.to_thread(other.save, folder)
    await asyncio.sleep(seconds / 4)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    text = (await reader.readexactly(length)).decode()
    writer.close()
    return {
        name: float(re.findall(rf"^svmp_model_{name}_total (\S+)", text, re.M)[0])
        for name in ("swaps", "refusals")
    }


def rows(name: str, seen: Responses, sent: int, spent: float) -> Iterator[Row]:
    wrong = float(seen.wrong.total())
    note = f"{len(seen.took):,} of {sent:,} answered"
    if seen.wrong:
        note += f"; {dict(seen.wrong)}"
    yield Row(f"{name}: errors", wrong, unit="requests", note=note)
    late = seen.percentile(0.99) * 1e3
    yield Row(f"{name}: 99th percentile", late, LATEST * 1e3, "what is wanted", "ms", 1.0)
    half, most = seen.percentile(0.5) * 1e3, max(seen.took) * 1e3
    yield Row(f"{name}: median", half, unit="ms", note=f"the longest took {most:.0f} ms")
    each = spent / max(len(seen.took), 1)
    share = f"{each * RATE:.0%} of one core at {RATE:,} a second"
    yield Row(f"{name}: processor time of a request", each * 1e3, unit="ms", note=share)


def measure(quick: bool) -> Iterator[Row]:
    scale, seconds = (0.05, 4.0) if quick else (1.0, SECONDS)
    ratings = netflix_shaped(scale)
    model = RatingModel(32, max_sweeps=3, progress=False).fit(ratings)
    other = RatingModel(32, max_sweeps=2, seed=1, progress=False).fit(ratings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.svmp"
        model.save(path)
        with service(path) as (pid, port):
            requests = [encoded(*request, port) for request in bodies(model, 2_000)]
            asyncio.run(load(port, requests, RATE / 4, 2.0))  # to warm up
            for name, beside in (
                ("1,000 requests a second", None),
                ("the same, with two swaps", lambda: swapped(port, path, other, seconds)),
            ):
                began = cpu(pid)
                seen, found = asyncio.run(both(load(port, requests, RATE, seconds), beside))
                yield from rows(name, seen, int(RATE * seconds), cpu(pid) - began)
            note = "one damaged and one sound model, seen by each process"
            yield Row("models refused", found["refusals"], unit="models", note=note)
            yield Row("models taken over", found["swaps"], unit="models")


async def both(
    one: Awaitable[Responses], beside: Callable[[], Awaitable[dict[str, Any]]] | None
) -> tuple[Responses, dict[str, Any]]:
    if beside is None:
        return await one, {}
    seen, found = await asyncio.gather(one, beside())
    return seen, found


if __name__ == "__main__":
    main(measure, __doc__)
