"""Tools to damage files at random, and to use them in a process that may crash.

A *worker* is a function of a random generator and a folder: it damages a file, uses it, and returns
a word for the outcome. `svmp.SvmpError` counts as "refused". Any other exception, a crash of
the process, and excessive time or memory is a finding, which is reported with the seed that
reproduces it:

    python -m tests.fuzz.mutants tests.fuzz.saved_files:checkpoint 123
"""

from __future__ import annotations

import copy
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import svmp

Rng = np.random.Generator
Worker = Callable[[Rng, Path], str]
ROOT = Path(__file__).parents[2]
SECONDS, MEMORY = 60, 4 << 30
"""What one mutant may take: generous, because the machine may be busy."""

DEEP = "\0deep"
"""Stands for lists in lists, deeper than any parser goes; `dumped` puts it in."""
AWKWARD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0,
    1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf"), "", "x", "nan", "\0",
    "é" * 300, [], [[]], {}, {"": None}, [None], [0, 0], [-1, 2], [1e300, 1], DEEP,
    {"class": "FullVB", "fields": {}},
)  # fmt: skip
PLAUSIBLE = (
    0,
    1,
    2,
    5,
    32,
    50,
    1000,
    10**6,
    2**40,
    0.0,
    1e-9,
    0.1,
    0.75,
    1.0,
    1.5,
    1e6,
    True,
    None,
)
"""Numbers that may well pass for others."""


# --- bytes ----------------------------------------------------------------------------------


def damaged_bytes(rng: Rng, whole: bytes, first: int = 0) -> bytes:
    """Flip, cut, add or overwrite bytes; `first` is where most of the file's structure ends."""
    data = bytearray(whole)
    size = len(data)
    end = first if first and rng.random() < 0.5 else size
    match rng.integers(6):
        case 0:  # flip a bit
            data[rng.integers(end)] ^= 1 << int(rng.integers(8))
        case 1:  # a few bytes
            for _ in range(rng.integers(1, 9)):
                data[rng.integers(end)] = rng.integers(256)
        case 2:  # cut short
            del data[rng.integers(size) :]
        case 3:  # something after the end
            data += rng.bytes(int(rng.integers(1, 100)))
        case 4:  # a hole in the middle, or a piece that stands twice
            a, b = sorted(int(i) for i in rng.integers(size, size=2))
            data = data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]
        case _:  # a block of one byte
            a = int(rng.integers(end))
            b = min(size, a + int(rng.integers(1, 200)))
            data[a:b] = bytes([rng.choice([0, 255, 32, 34])]) * (b - a)
    return bytes(data)


# --- JSON -----------------------------------------------------------------------------------


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to every entry of a JSON value, below the value itself."""
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = value
    elif isinstance(value, list):
        keys = range(len(value))
    return [place for key in keys for place in ((*way, key), *places(value[key], (*way, key)))]


def damaged_json(rng: Rng, value: Any) -> Any:
    """Return a JSON value with one entry replaced, removed, renamed, or swapped with another."""
    value = copy.deepcopy(value)
    ways = places(value)
    if not ways:
        return AWKWARD[rng.integers(len(AWKWARD))]
    if rng.random() < 0.3:  # texts outnumber numbers
        ways = [w for w in ways if isinstance(entry(value, w), int | float | None)] or ways
    *way, last = ways[rng.integers(len(ways))]
    inner = entry(value, way)
    match rng.integers(9):
        case 0:
            del inner[last]
        case 1 if isinstance(inner, dict):
            inner[str(AWKWARD[rng.integers(len(AWKWARD))])] = inner.pop(last)
        case 2 if isinstance(inner, dict):
            inner[last] = copy.deepcopy(inner[list(inner)[rng.integers(len(inner))]])
        case 3 if isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
            inner[last] = inner[last] * rng.choice([-1, 0, 2, 1000]) + int(rng.integers(-1, 2))
            inner[last] = inner[last].item() if hasattr(inner[last], "item") else inner[last]
        case 4 | 5 if isinstance(inner[last], int | float | None):
            inner[last] = PLAUSIBLE[rng.integers(len(PLAUSIBLE))]
        case _:
            inner[last] = copy.deepcopy(AWKWARD[rng.integers(len(AWKWARD))])
    return value


def entry(value: Any, way: Iterable[Any]) -> Any:
    """Return an entry of a JSON value."""
    for key in way:
        value = value[key]
    return value


def dumped(rng: Rng, value: Any) -> str:
    """Return JSON as text, with what Python's own cannot say: depth, and names that stand twice."""
    text = json.dumps(value)
    text = text.replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)
    if rng.random() < 0.05:
        text = text.replace("{", '{"format": 1, ', 1)
    return text


# --- safetensors ----------------------------------------------------------------------------

NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8"}
NAMES |= {"bool": "BOOL", "float16": "F16"}


def opened(whole: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of a safetensors file."""
    size = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + size]), whole[8 + size :]


def assembled(header: Any, body: bytes) -> bytes:
    """Return a safetensors file with this header, sound or not."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def taken_apart(whole: bytes) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the metadata and the arrays of a sound file."""
    header, body = opened(whole)
    about = header.pop("__metadata__", {})
    types = {v: k for k, v in NAMES.items()}
    arrays = {}
    for name, entry in header.items():
        a, b = entry["data_offsets"]
        flat = np.frombuffer(body[a:b], types[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"]).copy()
    return about, arrays


def put_together(about: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a sound file with these arrays."""
    header: dict[str, Any] = {"__metadata__": dict(about)}
    body = b""
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        shape = list(array.shape)
        kind = NAMES[array.dtype.name]
        offsets = [len(body), len(body) + len(data)]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        body += data
    return assembled(header, body)


def damaged_array(rng: Rng, array: np.ndarray) -> np.ndarray:
    """Return an array of another shape, of another type, or with awkward numbers in it."""
    match rng.integers(9):
        case 0:
            return array[: rng.integers(len(array))] if array.ndim and len(array) else array[None]
        case 1:
            return array[..., :0] if array.ndim else np.zeros(0)
        case 2:
            return np.concatenate([array, array]) if array.ndim else array.reshape(1)
        case 3:
            return array.astype(str(rng.choice(list(NAMES))))
        case 4:
            return array.T if rng.random() < 0.5 else array.ravel()
        case 5:
            return array[None] if rng.random() < 0.5 else array[..., None]
        case 6:
            return array * rng.choice([-1.0, 0.0, 1e300, 1e-300, 1e8])
        case _:
            changed = array.astype(np.float64)
            some = rng.random(changed.shape) < rng.choice([0.05, 1.0])
            if changed.size and not some.any():
                some.flat[rng.integers(changed.size)] = True
            changed[some] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 0, -1, 5e-324])
            return changed


def damaged_safetensors(rng: Rng, whole: bytes, key: str) -> bytes:
    """Return a safetensors file of svmp's with something wrong in it."""
    header, body = opened(whole)
    match rng.integers(10):
        case 0 | 1 | 2:
            return damaged_bytes(rng, whole, len(whole) - len(body))
        case 3:
            return assembled(dumped(rng, damaged_json(rng, header)), body)
        case 4 | 5 | 6:
            about = damaged_json(rng, json.loads(header["__metadata__"][key]))
            if rng.random() < 0.2:
                about = damaged_json(rng, about)
            header["__metadata__"][key] = dumped(rng, about)
            return assembled(header, body)
        case _:
            about, arrays = taken_apart(whole)
            for _ in range(rng.choice([1, 1, 2])):
                name, other = (str(n) for n in rng.choice(list(arrays), 2))
                match rng.integers(8):
                    case 0:
                        arrays.pop(name)
                    case 1:
                        arrays[str(rng.choice(["x", "natural/x", f"{name}2", ""]))] = arrays[name]
                    case 2 if name in arrays and other in arrays:
                        arrays[name], arrays[other] = arrays[other], arrays[name]
                    case _ if name in arrays:
                        arrays[name] = damaged_array(rng, arrays[name])
            return put_together(about, arrays)


# --- running --------------------------------------------------------------------------------


def findings(worker: str, seeds: Iterable[int], seconds: int = SECONDS) -> list[str]:
    """Run a worker, as "module:function", on every seed in another process; return what broke."""
    waiting, found = [int(seed) for seed in seeds], []
    counts: dict[str, int] = {}
    while waiting:
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.mutants", worker]
        command += ["--seconds", str(seconds), *map(str, waiting)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors)
            errors.seek(0)
            noise = errors.read().decode(errors="replace")
        lines = [json.loads(line) for line in process.stdout.decode().splitlines()]
        done = [line for line in lines if "end" in line]
        for line in done:
            counts[line["end"]] = counts.get(line["end"], 0) + 1
            if "trouble" in line:
                found.append(f"seed {line['seed']}: {line['trouble']}")
        waiting = waiting[len(done) :]
        if process.returncode:
            if len(done) == len(lines):  # not a mutant's doing
                raise RuntimeError(f"the process of {worker} died: {noise}")
            found.append(f"seed {waiting.pop(0)}: exit code {process.returncode}: {noise[:2000]}")
    print(worker, counts, file=sys.stderr)
    if not set(counts) - {"refused", "broken"}:
        found.append("every file was refused: nothing was tried")
    return found


def run_all(worker: Worker, seeds: Iterable[int], seconds: int) -> None:
    """Let a worker at one mutant after the other, and print what becomes of each."""

    def too_long(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    signal.signal(signal.SIGALRM, too_long)
    limited = False
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            _say(seed=seed)
            end: dict[str, str] = {}
            signal.alarm(seconds)
            try:
                end["end"] = worker(np.random.default_rng(seed), Path(folder))
            except svmp.SvmpError as error:
                text = str(error)
                end.update(end="refused", because=text[:300])
                if "\n" in text or len(text) > 2000 or " object at 0x" in text:
                    end["trouble"] = f"a message that is not one sentence: {text[:500]}"
            except BaseException as error:
                last = "".join(traceback.format_exception(error)[-6:])
                end.update(end="broken", trouble=f"{type(error).__name__}: {error!s:.300}\n{last}")
            signal.alarm(0)
            _say(seed=seed, **end)
            if not limited:  # what the libraries take at first is not the mutants' doing
                size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf(
                    "SC_PAGESIZE"
                )
                resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
                limited = True


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    module, function = sys.argv[1].split(":")
    given = sys.argv[2:]
    seconds = int(given[given.index("--seconds") + 1]) if "--seconds" in given else SECONDS
    numbers = given[2:] if "--seconds" in given else given
    run_all(getattr(import_module(module), function), [int(n) for n in numbers], seconds)
