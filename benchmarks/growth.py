"""Growth: seconds a sweep and peak memory for 1, 10 and 100 million ratings, K = 32.

Users grow in line with the ratings. Peak memory is of the whole process, with the ratings as they
were given. A figure is divided by what one million takes, times the millions.
"""

from __future__ import annotations

from collections.abc import Iterator

from alone import alone
from common import Row, main

MILLIONS = (1, 10, 100)
MOST_GB = 8.0


def measure(quick: bool) -> Iterator[Row]:
    one: dict[str, float] = {}
    for millions in (0.05, 0.1) if quick else MILLIONS:
        found = alone(millions, sweeps=3)
        one = one or {name: x / millions for name, x in found.items()}
        what, against = f"{millions} million ratings, K = 32", f"{millions} times one million"
        seconds, peak = found["seconds"], found["peak_GB"]
        yield Row(f"sweep, {what}", seconds, one["seconds"] * millions, against)
        yield Row(f"peak memory, {what}", peak, one["peak_GB"] * millions, against, "GB")
        if millions == 100:
            yield Row(f"peak memory, {what}", peak, MOST_GB, "the limit", "GB", 1.0)


if __name__ == "__main__":
    main(measure, __doc__)
