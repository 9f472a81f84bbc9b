"""The server's side of a worker process: start it, send it a run, read its messages, stop it."""

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


class RunEnd(NamedTuple):
    """How a run ended: svmp's status or "failed", an explanation if there is one, and the bound.

    While `probing`, the worker searches for a first step from which the run would not diverge.
    """

    state: str
    sentence: str = ""
    bound: float | None = None
    probing: bool = False


class RunProcess:
    """The process of one run. It can be started before its run is known."""

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        self.command = command
        self.stopping = False
        self._process: asyncio.Task[Process] | None = None

    def start(self) -> asyncio.Task[Process]:
        """Start the process, unless it was started before."""
        if self._process is None:
            # In a session of its own, so that Ctrl-C in the terminal reaches the lab alone.
            self._process = asyncio.create_task(
                asyncio.create_subprocess_exec(
                    *self.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
                )
            )
        return self._process

    async def run(
        self, request: Mapping[str, Any], receive: Callable[[list[float] | RunEnd], None]
    ) -> RunEnd:
        """Make a run, and pass on its rows and its end as they arrive."""
        try:
            process = await self.start()
        except OSError as error:
            return RunEnd("failed", f"the worker process could not be started: {error}")
        assert process.stdin
        assert process.stdout
        assert process.stderr
        if not process.stdin.is_closing():
            process.stdin.write(json.dumps(request).encode() + b"\n")
        stderr = asyncio.create_task(process.stderr.read())
        end, line = None, b""
        try:
            async for line in process.stdout:
                message = json.loads(line)
                if "row" in message:
                    receive(message["row"])
                else:
                    end = RunEnd(message.pop("end"), **message)
                    receive(end)
        except (ValueError, TypeError, KeyError):
            kill(process)
            end = RunEnd("failed", f"unexpected output of the worker process: {line[:99]!r}")
        code = await process.wait()
        errors = (await stderr).decode(errors="replace")
        return end._replace(probing=False) if end else self._failure(code, errors)

    def stop(self) -> asyncio.Task[None]:
        """Ask the process to end, and kill it if that takes too long."""
        self.stopping = True
        return asyncio.create_task(self._stop())

    async def _stop(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(OSError):  # the process could not be started
            process = await self._process
            assert process.stdin
            process.stdin.close()  # which asks it to end
            try:
                await asyncio.wait_for(process.wait(), 2 * GRACE)
            except TimeoutError:
                kill(process)

    def _failure(self, code: int, errors: str) -> RunEnd:
        """Describe the end of a process that did not report it."""
        if self.stopping:
            return RunEnd("interrupted")
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        last = errors.strip().splitlines()[-1:] or ["no error message"]
        return RunEnd("failed", f"the worker process ended {how}: {last[0][:300]}")


def kill(process: Process) -> None:
    """Kill a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
