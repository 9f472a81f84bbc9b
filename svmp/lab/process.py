"""A worker process, as the server sees it: started, given its order, heard, and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from svmp.lab.worker import GRACE

WORKER = (sys.executable, "-P", "-m", "svmp.lab.worker")


class End(NamedTuple):
    """How a run ended: svmp's status or "failed", a sentence if there is more to say, the bound.

    While it is `probing`, a first step is looked for from which the run would not diverge.
    """

    state: str
    sentence: str = ""
    bound: float | None = None
    probing: bool = False


class Worker:
    """One process for one run. It can be started before there is a run to do."""

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        self.command = command
        self.stopping = False
        self._process: asyncio.Task[Process] | None = None

    def start(self) -> asyncio.Task[Process]:
        """Start the process, if it has not been."""
        if self._process is None:
            # In a session of its own, so that Ctrl-C in the terminal reaches the lab alone.
            self._process = asyncio.create_task(
                asyncio.create_subprocess_exec(
                    *self.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
                )
            )
        return self._process

    async def run(self, order: Mapping[str, Any], hear: Callable[[list[float] | End], None]) -> End:
        """Do a run to its end, and let its rows and its end be heard as they come."""
        try:
            process = await self.start()
        except OSError as error:
            return End("failed", f"the worker process could not be started: {error}")
        assert process.stdin
        assert process.stdout
        assert process.stderr
        if not process.stdin.is_closing():
            process.stdin.write(json.dumps(order).encode() + b"\n")
        words = asyncio.create_task(process.stderr.read())
        end, line = None, b""
        try:
            async for line in process.stdout:
                message = json.loads(line)
                if "row" in message:
                    hear(message["row"])
                else:
                    end = End(message.pop("end"), **message)
                    hear(end)
        except (ValueError, TypeError, KeyError):
            kill(process)
            end = End("failed", f"the worker process wrote what is none of its own: {line[:99]!r}")
        code = await process.wait()
        said = (await words).decode(errors="replace")
        return end._replace(probing=False) if end else self._died(code, said)

    def stop(self) -> asyncio.Task[None]:
        """Let the process end: kindly, and by force if that takes too long."""
        self.stopping = True
        return asyncio.create_task(self._stop())

    async def _stop(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(OSError):  # of one that could not be started
            process = await self._process
            assert process.stdin
            process.stdin.close()  # at which it ends
            try:
                await asyncio.wait_for(process.wait(), 2 * GRACE)
            except TimeoutError:
                kill(process)

    def _died(self, code: int, words: str) -> End:
        """Say how a process ended that did not say so itself."""
        if self.stopping:
            return End("interrupted")
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        last = words.strip().splitlines()[-1:] or ["it left no word why"]
        return End("failed", f"the worker process ended {how}: {last[0][:300]}")


def kill(process: Process) -> None:
    """End a process at once, if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
