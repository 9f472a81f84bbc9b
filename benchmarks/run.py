"""Run the benchmarks one after the other, and write their tables into docs/performance.md.

    python benchmarks/run.py                        # all: hours
    python benchmarks/run.py against_c growth       # some
    python benchmarks/run.py --quick                # small sizes, to check that they run

A benchmark that fails is reported at the end; the others still run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import table

HERE = Path(__file__).parent
STARTS = "main(measure, __doc__)"
"""How a file that is a benchmark ends; the others help some of them."""


def is_benchmark(path: Path) -> bool:
    return path.read_text(encoding="utf-8").rstrip().endswith(STARTS)


def main() -> None:
    every = sorted(p.stem for p in HERE.glob("*.py") if is_benchmark(p))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(every)}; by default all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that they run")
    settings = parser.parse_args()
    unknown = sorted(set(settings.names) - set(every))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(every)}")
    failed = []
    for name in settings.names or every:
        print(f"== {name}", flush=True)
        quick = ["--quick"] if settings.quick else []
        if subprocess.run([sys.executable, HERE / f"{name}.py", *quick]).returncode:
            failed.append(name)
    if not settings.quick:
        table.main()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
