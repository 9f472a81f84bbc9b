"""Growth: seconds a sweep and peak memory for 1, 10 and 100 million ratings, K = 32.

The number of users grows with the ratings. Peak memory is that of the whole process, including the
ratings. Each figure is compared with that of one million times the number of millions.
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
        what, against = f"{millions} million ratings, K = 32", f"{millions} times one million"
        for name, unit, figure in (("sweep", "s", "seconds"), ("peak memory", "GB", "peak_GB")):
            other = one[figure] * millions if one else None
            yield Row(f"{name}, {what}", found[figure], other, against if one else "", unit)
        one = one or {name: x / millions for name, x in found.items()}
        if millions == 100:
            yield Row(f"peak memory, {what}", found["peak_GB"], MOST_GB, "the limit", "GB", 1.0)


if __name__ == "__main__":
    main(measure, __doc__)
