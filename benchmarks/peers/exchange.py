"""Interface of the peers' scripts: a request as JSON on standard input, the answer in a file."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def answer(function):
    """Call a function with the request, and write its result."""
    request = json.load(sys.stdin)
    Path(sys.argv[1]).write_text(json.dumps(function(request)))


def load(request):
    """Return (user, item, rating) for training and held out, and the numbers of users and items."""
    with np.load(request["data"]) as table:
        train, held = ([table[f"{part}_{x}"] for x in "uir"] for part in ("train", "held"))
    return train, held, request["sizes"]


def rmse(prediction, rating):
    """Root mean squared error, with predictions kept in the range of ratings."""
    prediction = np.clip(prediction, rating.min(), rating.max())
    return float(np.sqrt(np.mean((prediction - rating) ** 2)))


def tested(request):
    """Return the users to recommend items to."""
    with np.load(request["data"]) as table:
        return table["users"]


def best(scores, users, events, n):
    """Return the n items of the highest scores of each user, best first, without their events."""
    top = []
    for begin in range(0, len(users), 500):
        some = users[begin : begin + 500]
        block, seen = np.array(scores(some), np.float32), events[some]
        block[np.repeat(np.arange(len(some)), np.diff(seen.indptr)), seen.indices] = -np.inf
        first = np.argpartition(-block, n, axis=1)[:, :n]
        order = np.argsort(-np.take_along_axis(block, first, 1), axis=1)
        top += np.take_along_axis(first, order, 1).tolist()
    return top


class Stopwatch:
    """Seconds since it was made, without those of `pause`."""

    def __init__(self):
        self.began, self.paused = time.perf_counter(), 0.0

    @property
    def seconds(self):
        return time.perf_counter() - self.began - self.paused

    def pause(self, function, *arguments):
        """Call a function without counting its time."""
        began = time.perf_counter()
        result = function(*arguments)
        self.paused += time.perf_counter() - began
        return result


def sweeps(request, declare):
    """Return processor seconds of BayesPy's quickest sweep, and the last bound.

    `declare` returns the hidden nodes, in the order of their updates, and the observed node.
    """
    with np.load(request["data"]) as table:
        data = {name: table[name] for name in table.files}
    data["y"] = data.pop("word", data.get("y"))
    hidden, observed = declare(data)
    observed.observe(data["y"])
    seconds = []
    for _ in range(request["sweeps"]):
        began = time.process_time()
        for node in hidden:
            node.update()
        seconds.append(time.process_time() - began)
    bound = sum(float(node.lower_bound_contribution()) for node in (*hidden, observed))
    return {"seconds": min(seconds), "bound": bound}
