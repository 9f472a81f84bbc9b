"""gensim's online LdaModel: the topics after each pass, and the seconds."""

import gensim
import numpy as np
from exchange import Stopwatch, answer
from gensim.models.callbacks import Metric
from scipy import sparse


class AfterEachPass(Metric):
    """Keeps the topics: calling `update` once a pass would count the documents anew each time."""

    logger, title = None, "topics"

    def __init__(self):
        self.topics, self.seconds, self.watch = [], [], Stopwatch()

    def get_value(self, model, **others):
        self.seconds.append(self.watch.seconds)
        self.topics.append(self.watch.pause(model.get_topics))


def measure(request):
    with np.load(request["data"]) as table:
        parts = (table["counts"], table["indices"], table["indptr"])
        counts = sparse.csr_matrix(parts, shape=table["shape"])
    documents = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in counts]
    words = {i: str(i) for i in range(counts.shape[1])}
    kept = AfterEachPass()
    gensim.models.LdaModel(
        documents,
        id2word=words,
        num_topics=request["topics"],
        alpha=[request["alpha"]] * request["topics"],
        eta=request["eta"],
        chunksize=request["batch"],
        passes=request["passes"],
        decay=request["kappa"],
        offset=request["tau"],
        eval_every=None,
        random_state=request["seed"],
        callbacks=[kept],
    )
    np.save(request["topics_to"], np.asarray(kept.topics, np.float32))
    return {"version": gensim.__version__, "seconds": kept.seconds}


answer(measure)
