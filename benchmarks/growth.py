"""Growth: seconds a sweep and peak memory for 1, 10 and 100 million ratings, K = 32.

Users grow in line with the ratings. Peak memory is of the whole process, with the ratings as they
were given. A figure is divided by what one million takes, times the millions.
"""

from __future__ import annotations

from alone import alone
from common import Row, main, show

MILLIONS = (1, 10, 100)
MOST_GB = 8.0


def measure(quick: bool) -> list[Row]:
    rows = []
    one: dict[str, float] = {}
    for millions in (0.05, 0.1) if quick else MILLIONS:
        found = alone(millions, sweeps=3)
        one = one or {name: x / millions for name, x in found.items()}
        what = f"{millions} million ratings, K = 32"
        against = f"{millions} times one million"
        rows += [
            Row(f"sweep, {what}", found["seconds"], one["seconds"] * millions, against),
            Row(f"peak memory, {what}", found["peak_GB"], one["peak_GB"] * millions, against, "GB"),
        ]
        if millions == MILLIONS[-1]:
            most = "8 GB"
            rows.append(Row(f"peak memory, {what}", found["peak_GB"], MOST_GB, most, "GB", 1.0))
        for row in rows[-2:]:
            show(row)
    return rows


if __name__ == "__main__":
    main(measure, __doc__)
