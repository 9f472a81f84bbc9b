"""Users and items as vectors whose inner products rank, for approximate nearest neighbour search.

The score of item n for user m, before it is clipped, is E[s] = offset + a_m + b_n + u_m . v_n under
q. The bias of the item is one more entry, next to a 1:

    E[s] = (u_m, 1) . (v_n, b_n) + c_m,    c_m = offset + a_m,

and c_m does not change the order of the items of a user. Biases and slopes of a model of ratings
are among the entries of u and v already. For events b_n is what the model ranks by: with the score
"z + 1/2 log pi" it is the bias plus half the log odds of being considered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.recommend.side import Floats, Side


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors with `users @ items.T + constant[:, None]` as unclipped scores.

    Attributes
    ----------
    users, items
        A row for each, in single precision and of equal length.
    constant
        For each user, the part of the scores that does not depend on the item.
    user_ids, item_ids
        Their ids; `user_ids` is None for a `Person`.
    """

    users: Floats
    items: Floats
    constant: Floats
    user_ids: NDArray[Any] | None
    item_ids: NDArray[Any]


def vectors_of(
    users: Side, items: Side, offset: float, user_ids: NDArray[Any] | None, item_ids: NDArray[Any]
) -> Vectors:
    """Return users and items as vectors; `items` have the biases that are ranked by."""
    one = np.ones((len(users), 1), np.float32)
    return Vectors(
        np.hstack([users.mean, one]).astype(np.float32),
        np.hstack([items.mean, items.bias[:, None]]).astype(np.float32),
        (users.bias + np.float32(offset)).astype(np.float32),
        user_ids,
        item_ids,
    )
