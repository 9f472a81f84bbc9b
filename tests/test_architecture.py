"""docs/architecture.md is true: its drawing, its walks and every name in it."""

from __future__ import annotations

import ast
import asyncio
import importlib
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grimp
import numpy as np
import pytest

import svmp

sys.path.append(str(Path(__file__).parents[1] / "docs" / "site"))
import rooms

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "svmp"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_drawings_show_the_imports() -> None:
    """`python docs/site/rooms.py` draws them anew."""
    assert rooms.drawn(PAGE) == PAGE
    assert len(rooms.DRAWING.findall(PAGE)) == 3


@pytest.mark.parametrize("package", ["svmp", "svmp.inference", "svmp.posterior"])
def test_no_two_parts_import_each_other(package: str) -> None:
    arrows = rooms.parts_of(grimp.build_graph("svmp", cache_dir=None), package)
    assert not [part for part in arrows if part in rooms.reachable(arrows, part)]


@pytest.mark.parametrize("room", ["inference", "posterior"])
def test_every_part_of_a_room_is_described(room: str) -> None:
    names = {p.name if p.is_dir() else p.stem for p in (PACKAGE / room).iterdir()}
    parts = {n for n in names if not n.startswith("_")}
    heading = {"inference": "inference", "posterior": "the posterior"}[room]
    section = PAGE.split(f"## The room of {heading}")[1].split("\n## ")[0]
    cells = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
    assert parts == {name.removesuffix(".py") for name in re.findall(r"`([\w.]+)/?`", cells)}


def test_every_room_is_described() -> None:
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert rooms <= set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.M))


def test_every_file_of_parts_is_described() -> None:
    section = PAGE.split("## The room of parts")[1].split("\n## ")[0]
    files = {f"parts/{path.name}" for path in (PACKAGE / "parts").glob("[a-z]*.py")}
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert files == set(re.findall(r"`([\w/.]+)`", " ".join(cells)))


FILES = sorted(set(re.findall(r"`((?:\w+/)+\w+\.(?:py|toml)|\w+\.py)`", PAGE)))


@pytest.mark.parametrize("name", FILES)
def test_named_files_exist(name: str) -> None:
    assert any((folder / name).exists() for folder in (PACKAGE, ROOT)) or list(
        PACKAGE.rglob(name)
    ), name


def test_names_of_the_paper_table_are_where_it_says() -> None:
    table = PAGE.split("## Where each line of the paper is")[1].split("## The room of parts")[0]
    found = 0
    for line in table.splitlines():
        cell = line.split("|")[2] if line.startswith("| ") else ""
        for names, file in re.findall(r"((?:`[\w.]+`(?:,? and )?)+)[^`]*? in `([\w/]+\.py)`", cell):
            defined = names_of(PACKAGE / file)
            for name in re.findall(r"`([\w.]+)`", names):
                assert name in defined, f"{file} has no {name}"
                found += 1
    assert found >= 10


def names_of(path: Path) -> set[str]:
    """Return the functions, classes and methods of a file."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            own = (n for n in node.body if isinstance(n, ast.FunctionDef))
            names |= {f"{node.name}.{n.name}" for n in own}
    return names


# --- walks ----------------------------------------------------------------------------------


def ratings(count: int = 300) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(20, size=count), rng.integers(10, size=count), rng.normal(size=count)


def factorization() -> svmp.Model:
    user, item, stars = ratings()
    with svmp.Model(coords={"user": 20, "item": 10, "factor": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=stars)
    return model


def topics() -> svmp.Model:
    rng = np.random.default_rng(0)
    doc, word = np.repeat(np.arange(10), 8), rng.integers(6, size=80)
    with svmp.Model(coords={"doc": 10, "topic": 2, "word": 6, "token": 80}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def in_parts() -> svmp.Parts:
    def declare(part: Any) -> svmp.Model:
        coords = {"user": part.labels("user"), "item": range(10), "factor": 2}
        with svmp.Model(coords=coords) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            mean = svmp.dot(u[part.keys("user")], v[part.item])
            svmp.Normal("r", mu=mean, tau=1, dims="rating", observed=part.stars)
        return model

    table = dict(zip(("user", "item", "stars"), ratings(), strict=True))
    return svmp.Parts(declare, svmp.split(table, by="user", parts=3))


def recommender() -> Any:
    from svmp.ratings import Ratings
    from svmp.recommend import RatingModel

    user, item, stars = ratings(10_000)
    table = Ratings(
        user.astype(np.int32),
        item.astype(np.int32),
        stars.astype(np.float32),
        np.arange(20),
        np.arange(10),
    )
    return RatingModel(factors=2, max_sweeps=6, threads=1), table


def request() -> Callable[[], object]:
    import httpx

    from svmp.recommend.service import demo
    from tests.recommend.service.conftest import app_of

    app, current = app_of(demo.MODEL)
    user = current.served.model.users_.ids[0]

    async def post() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.post("/recommend", json={"users": [user.item()]})
            assert answer.status_code == 200, answer.text

    return lambda: asyncio.run(post())


def call(number: int) -> Callable[[], object]:
    if number == 1:
        model, method = factorization(), svmp.Children(3)
        return lambda: svmp.fit(model, method, kernels=False, max_sweeps=2)
    if number == 2:
        model = factorization()
        return lambda: svmp.fit(model, kernels=True, max_sweeps=3)
    if number == 3:
        model = topics()
        return lambda: svmp.fit(model, svmp.Batch(3, over="doc"), kernels=True, max_sweeps=2)
    if number == 4:
        estimator, table = recommender()
        return lambda: estimator.fit(table)
    if number == 5:
        return request()
    return lambda: svmp.fit(in_parts(), kernels=True, max_sweeps=2)


def entered(run: Callable[[], object]) -> list[str]:
    """Return the files of the package in the order in which a call first enters them."""
    importlib.import_module("svmp.fitting.fit")  # importing it is no part of a walk
    seen: dict[str, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)):
            seen.setdefault(Path(path).relative_to(PACKAGE).as_posix())

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
def test_walks_pass_the_files_in_order(number: int) -> None:
    text = re.split(rf"^\*\*{number}\. ", PAGE, flags=re.M)[1]
    text = re.split(r"^\*\*\d\. |^## ", text, flags=re.M)[0]
    files = re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.M)
    assert len(files) >= 5
    passed = entered(call(number))
    missing = [file for file in files if file not in passed]
    assert not missing, f"not entered: {missing}"
    assert sorted(files, key=passed.index) == files
