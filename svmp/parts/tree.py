"""The order in which results of groups of parts are added: a tree of pairs.

    total = ((g0 + g1) + (g2 + g3)) + ((g4 + g5) + g6)

The tree is a function of the number of groups. So a place that has some groups next to each other
can add them itself, and return one result for all of them: the bits are the same as if every result
had come back by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def whole_size(count: int) -> int:
    """Return the least power of two that is at least `count`."""
    return 1 << max(count - 1, 0).bit_length()


def halves(node: range) -> tuple[range, range]:
    """Return the two nodes below a node of the tree; the second may be empty.

    >>> halves(range(0, 7)), halves(range(4, 7))
    ((range(0, 4), range(4, 7)), (range(4, 6), range(6, 7)))
    """
    middle = node.start + whole_size(len(node)) // 2
    return range(node.start, middle), range(middle, node.stop)


def single_nodes(count: int) -> list[range]:
    """Return the lowest nodes of the tree, one for each group."""
    return [range(i, i + 1) for i in range(count)]


def added_up(
    values: Iterator[Value], nodes: Sequence[range], add: Callable[[Value, Value], Value]
) -> Value:
    """Return the total of all groups, given those of some nodes in order.

    >>> added_up(iter("abcde"), single_nodes(5), "({}+{})".format)
    '(((a+b)+(c+d))+e)'
    """
    known = set(nodes)

    def total(node: range) -> Value:
        if node in known:
            return next(values)
        first, second = halves(node)
        return add(total(first), total(second))

    found = total(range(nodes[0].start, nodes[-1].stop))
    next(values, None)  # whoever makes the values is done, and can release what they needed
    return found
