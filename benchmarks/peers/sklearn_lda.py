"""scikit-learn's online LatentDirichletAllocation: the topics after each pass, and the seconds."""

import numpy as np
import sklearn
from exchange import Stopwatch, answer
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation


def measure(request):
    with np.load(request["data"]) as table:
        parts = (table["counts"], table["indices"], table["indptr"])
        counts = sparse.csr_matrix(parts, shape=table["shape"])
    model = LatentDirichletAllocation(
        request["topics"],
        doc_topic_prior=request["alpha"],
        topic_word_prior=request["eta"],
        learning_method="online",
        batch_size=request["batch"],
        learning_decay=request["kappa"],
        learning_offset=request["tau"],
        total_samples=counts.shape[0],
        random_state=request["seed"],
    )
    topics, seconds, watch = [], [], Stopwatch()
    for _ in range(request["passes"]):
        model.partial_fit(counts)
        seconds.append(watch.seconds)
        topics.append(model.components_ / model.components_.sum(axis=1, keepdims=True))
    np.save(request["topics_to"], np.asarray(topics, np.float32))
    return {"version": sklearn.__version__, "seconds": seconds}


answer(measure)
