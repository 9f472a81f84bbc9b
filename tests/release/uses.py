"""One use of each extra, as a script that runs where svmp and that extra alone are installed.

Results are compared with closed forms, in which the number of rows is all that is needed.
"""

from __future__ import annotations

FIT = """
import numpy as np
import svmp

with svmp.Model() as model:
    rate = svmp.Gamma("rate", alpha=2, beta=1)
    svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
fit = svmp.fit(model)
assert (fit["rate"].alpha, fit["rate"].beta) == (17, 4)
"""

MISSING = """
for use in (fit.plot, lambda: svmp.parquet("rows"), lambda: svmp.from_dask(None)):
    try:
        use()
    except svmp.SvmpError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError("an extra is missing, and nothing says so")
"""

HELP = """
import subprocess, sys
from pathlib import Path

for command in ("recommend", "recommend fit", "recommend serve", "lab", "warm", "study all"):
    words = [Path(sys.executable).parent / "svmp", *command.split(), "--help"]
    assert "Usage: svmp" in subprocess.run(words, check=True, capture_output=True, text=True).stdout
"""

RATINGS = """
rng = np.random.default_rng(0)
pairs = rng.permutation(30 * 20)[:300]
lines = [f"{pair // 20},{pair % 20},{1 + pair % 5}" for pair in pairs]
with open("ratings.csv", "w") as file:
    file.write("user,item,rating\\n" + "\\n".join(lines))
"""

PARTS = """
import pyarrow as pa
from pyarrow import parquet

for part in range(2):
    parquet.write_table(pa.table({"count": [3 + part, 4]}), f"rows-{part}.parquet")

def declare(rows):
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=rows["count"])
    return model
"""

USES = {
    "": FIT + MISSING + HELP,
    "plot": FIT + 'fit.plot().figure.savefig("bound.png")',
    "frames": FIT + """
import subprocess, sys

subprocess.run([sys.executable, "-m", "pip", "install", "-q", "pandas"], check=True)
import pandas as pd

with svmp.Model(data=pd.DataFrame({"count": [3, 4, 8]})) as model:
    rate = svmp.Gamma("rate", alpha=2, beta=1)
    svmp.Poisson("x", mu=rate, observed="count")
assert svmp.fit(model)["rate"].alpha == 17
""",
    "xarray": FIT + """
mean = fit.to_xarray()["rate"].sel(statistic="mean")
assert abs(float(mean) - 17 / 4) < 1e-12
""",
    "arviz": FIT + """
tree = fit.to_arviz(draws=50, seed=0)
assert tree.posterior["rate"].shape == (1, 50)
""",
    "psis": FIT + """
assert fit.khat(model) < 0.7
""",
    "parts": FIT + PARTS + """
found = svmp.fit(svmp.Parts(declare, svmp.parquet("rows-*.parquet")))
assert (found["rate"].alpha, found["rate"].beta) == (17, 5)
""",
    "dask": FIT + PARTS + """
from distributed import Client

with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    found = svmp.fit(svmp.Parts(declare, svmp.parquet("rows-*.parquet")), client=client)
assert (found["rate"].alpha, found["rate"].beta) == (17, 5)
""",
    "sklearn": FIT + """
import numpy as np
from svmp.models import BayesianRegression

x = np.random.default_rng(0).normal(size=(200, 2))
model = BayesianRegression().fit(x, x @ [1.0, -2.0] + 3)
assert np.allclose(model.coef_, [1, -2], atol=0.01)
""",
    "recommend": FIT + RATINGS + """
from svmp.recommend import RatingModel

model = RatingModel(factors=2, max_sweeps=3).fit("ratings.csv")
assert len(model.recommend([0], n=3).items[0]) == 3
""",
    "study": FIT + RATINGS + """
import subprocess, sys
from pathlib import Path

options = ["--children", "1", "--max-accesses", "20000", "--data", "ratings.csv", "--out", "study"]
subprocess.run([Path(sys.executable).parent / "svmp", "study", "figure2", *options], check=True)
assert Path("study/index.html").is_file()
""",
    "serve": FIT + """
import json, subprocess, sys, urllib.request
from pathlib import Path

command = [Path(sys.executable).parent / "svmp", "recommend", "serve", "--port", "0"]
service = subprocess.Popen([*command, "--workers", "1"], stdout=subprocess.PIPE, text=True)
try:
    lines = iter(service.stdout.readline, "")
    address = next(w for line in lines for w in line.split() if w.startswith("http://"))
    with urllib.request.urlopen(address.rstrip("/") + "/health", timeout=60) as answer:
        assert json.load(answer)
finally:
    service.terminate()
    service.wait(60)
""",
}  # fmt: skip
