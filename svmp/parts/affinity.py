"""Which worker a group of parts should go to: the one that has its parts in memory already.

It is only a wish. The scheduler runs a task elsewhere if that worker is gone or far behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

Group = tuple[int, ...]


@dataclass(eq=False)
class Homes:
    """The worker of each group, by address.

    Attributes
    ----------
    of
        Address by group.
    suspects
        Workers that did not finish a task before the deadline, or did not answer when they joined.
        They get no tasks as long as there are others.
    """

    of: dict[Group, str] = field(default_factory=dict)
    suspects: set[str] = field(default_factory=set)

    def assign(self, groups: Iterable[Group], workers: Collection[str]) -> None:
        """Give each group a worker that is there; as few as possible move.

        At first groups next to each other have the same worker, which can then add them up.

        >>> homes = Homes()
        >>> homes.assign([(0,), (1,), (2,)], ["a", "b"])
        >>> homes.of
        {(0,): 'a', (1,): 'a', (2,): 'b'}
        >>> homes.assign([(0,), (1,), (2,)], ["b", "c"])
        >>> homes.of
        {(2,): 'b', (0,): 'c', (1,): 'b'}
        """
        self.suspects &= set(workers)
        able = self.able(workers)
        if not able:
            self.of.clear()
            return
        groups = list(groups)
        self.of = {group: home for group, home in self.of.items() if home in able}
        if not self.of:
            self.of = {g: able[i * len(able) // len(groups)] for i, g in enumerate(groups)}
        load = dict.fromkeys(able, 0)
        for home in self.of.values():
            load[home] += 1
        for group in groups:
            if group not in self.of:
                self.of[group] = min(load, key=lambda worker: load[worker])
                load[self.of[group]] += 1
        for group, home in self.of.items():
            least = min(load, key=lambda worker: load[worker])
            if load[home] > load[least] + 1:
                self.of[group] = least
                load[home], load[least] = load[home] - 1, load[least] + 1

    def able(self, workers: Iterable[str]) -> list[str]:
        """Return the workers that are not suspect; all of them if all are."""
        names = sorted(workers)
        return [name for name in names if name not in self.suspects] or names
