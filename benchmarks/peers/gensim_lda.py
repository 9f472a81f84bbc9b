"""gensim's online LdaModel: the topics after each pass, and the seconds."""

import gensim
import numpy as np
from exchange import Stopwatch, answer
from scipy import sparse


def measure(request):
    with np.load(request["data"]) as table:
        parts = (table["counts"], table["indices"], table["indptr"])
        counts = sparse.csr_matrix(parts, shape=table["shape"])
    documents = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in counts]
    words = {i: str(i) for i in range(counts.shape[1])}
    topics, seconds, watch = [], [], Stopwatch()
    model = gensim.models.LdaModel(
        id2word=words,
        num_topics=request["topics"],
        alpha=[request["alpha"]] * request["topics"],
        eta=request["eta"],
        chunksize=request["batch"],
        eval_every=None,
        random_state=request["seed"],
    )
    for _ in range(request["passes"]):
        model.update(documents)
        seconds.append(watch.seconds)
        topics.append(model.get_topics())
    np.save(request["topics_to"], np.asarray(topics, np.float32))
    return {"version": gensim.__version__, "seconds": seconds}


answer(measure)
