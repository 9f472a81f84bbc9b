"""Drawings of a network: they have every variable, plate and arrow, and no name breaks them."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import svmp

needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="Graphviz' program `dot` is not installed"
)

STRANGE = [
    'say "hi"',
    "it's",
    "<b>bold</b>",
    "a & b",
    "back\\slash",
    "β₀ → µ 日本 🎲",
    "semi;colon",
    "[br]{ac}(ket)|s",
    "x --> y",
    "#35;",
    "end",
    "back`tick",
    "100%",
    "&quot;",
    "]]>",
]


def ratings() -> svmp.Model:
    with svmp.Model(coords={"user": 3, "item": 4, "k": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        r = np.arange(5.0)
        mean = svmp.dot(u[[0, 1, 2, 0, 1]], v[[0, 1, 2, 3, 0]])
        svmp.Normal("r", mu=mean, tau=tau, dims="rating", observed=r)
    return model


def named(name: str) -> svmp.Model:
    """Return a model in which a hidden and an observed variable and a dimension have odd names."""
    with svmp.Model(coords={f"dim {name}": 2}) as model:
        x = svmp.Normal(name, mu=0, tau=1, dims=f"dim {name}")
        svmp.Normal(f"y {name}", mu=x, tau=1, dims=f"dim {name}", observed=[1.0, 2.0])
    return model


def test_mermaid_shows_plates_variables_and_arrows() -> None:
    text = ratings().draw().mermaid
    assert text.splitlines() == [
        "flowchart TD",
        '  subgraph p0["user 3 x k 2"]',
        '    v0("u ~ Normal")',
        "  end",
        '  subgraph p1["item 4 x k 2"]',
        '    v1("v ~ Normal")',
        "  end",
        '  v2("tau ~ Gamma")',
        '  subgraph p3["rating 5"]',
        '    v3["r ~ Normal"]',
        "  end",
        "  v0 --> v3",
        "  v1 --> v3",
        "  v2 --> v3",
        "  classDef observed fill:#cfd8e3,stroke:#333",
        "  class v3 observed",
    ]


def test_a_mixture_is_drawn_with_its_categorical() -> None:
    with svmp.Model(coords={"k": 2, "row": 3}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=1, dims="k")
        svmp.Mixture("x", z, svmp.Normal.dist(m, 1), dims="row", observed=[1.0, 2.0, 3.0])
    text = model.draw().mermaid
    assert "Mixture of 2 Normal" in text
    assert {"v0 --> v1", "v1 --> v3", "v2 --> v3"} <= {line.strip() for line in text.splitlines()}


def test_an_empty_model_can_be_drawn() -> None:
    with svmp.Model() as model:
        pass
    assert model.draw().mermaid == "flowchart TD"


LINE = re.compile(
    r"""  (?:flowchart\ TD | (?:\ \ )* (?:
        subgraph\ p\d+\["[^"\n]*"\] | end
        | v\d+ (?: \("[^"\n]*"\) | \["[^"\n]*"\] ) | v\d+\ -->\ v\d+
        | classDef\ observed\ .* | class\ v\d+(,v\d+)*\ observed ) )""",
    re.VERBOSE,
)


def read_by_mermaid(label: str) -> str:
    """Return what Mermaid shows for a label: #35; and #quot; are its entities, and then HTML's."""

    def entity(found: re.Match[str]) -> str:
        return f"&#{found[1]};" if found[1].isdigit() else f"&{found[1]};"

    return html.unescape(re.sub(r"#(\w+);", entity, label))


@pytest.mark.parametrize("name", STRANGE)
def test_no_name_breaks_the_mermaid_text(name: str) -> None:
    """A label is in quotes on a separate line, without quotes inside."""
    lines = named(name).draw().mermaid.splitlines()
    assert len(lines) == 8
    for line in lines:
        assert LINE.fullmatch(line), line
    labels = re.findall(r'"([^"]*)"', "\n".join(lines))
    shown = [read_by_mermaid(label) for label in labels]
    assert shown == [f"dim {name} 2", f"{name} ~ Normal", f"y {name} ~ Normal"]


@needs_dot
@pytest.mark.parametrize("name", STRANGE)
def test_no_name_breaks_the_picture(name: str) -> None:
    root = ElementTree.fromstring(named(name).draw().svg())
    texts = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    shown = " ".join(" ".join(texts).split())
    assert f"dim {name} 2" in shown
    assert f"y {name} Normal" in shown


@needs_dot
def test_the_picture_has_a_node_per_variable_and_a_box_per_plate() -> None:
    root = ElementTree.fromstring(ratings().draw().svg())
    kinds = [g.get("class") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert (kinds.count("node"), kinds.count("cluster"), kinds.count("edge")) == (4, 3, 3)


def test_without_graphviz_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    drawing = ratings().draw()
    with pytest.raises(svmp.SvmpError, match="`dot` is not installed"):
        drawing.svg()
    assert drawing._repr_svg_() is None
    assert "flowchart TD" in str(drawing)


@pytest.mark.parametrize(
    "suffix", [".mmd", ".md", ".dot", ".gv", pytest.param(".svg", marks=needs_dot)]
)
def test_save(tmp_path: Path, suffix: str) -> None:
    drawing = ratings().draw()
    path = tmp_path / f"model{suffix}"
    drawing.save(path)
    text = path.read_text(encoding="utf-8")
    if suffix in (".mmd", ".md"):
        assert drawing.mermaid in text
        assert text.startswith("```mermaid\n" if suffix == ".md" else "flowchart")
    elif suffix == ".svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    else:
        assert text == drawing.dot


def test_unknown_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(svmp.SvmpError, match=r"'\.png'"):
        ratings().draw().save(tmp_path / "model.png")
    assert not list(tmp_path.iterdir())


@needs_dot
def test_notebooks_get_a_picture() -> None:
    drawing = ratings().draw()
    assert drawing._repr_svg_() == drawing.svg()
    assert drawing._repr_markdown_() == f"```mermaid\n{drawing.mermaid}\n```"


def test_drawing_a_model_twice_is_the_same() -> None:
    assert ratings().draw() == ratings().draw()
