"""The table of families and their capabilities in CONTRIBUTING.md is that of the code."""

from __future__ import annotations

import sys

import pytest

from svmp import families
from svmp.families.family import Family

from .pages import ROOT

sys.path.append(str(ROOT / "docs" / "site"))
import capabilities


def test_page_has_the_table_of_the_code() -> None:
    """`python docs/site/capabilities.py` writes it anew."""
    page = capabilities.PAGE.read_text(encoding="utf-8")
    assert len(capabilities.TABLE.findall(page)) == 1
    assert capabilities.written(page) == page


def test_table_has_every_family_and_every_capability() -> None:
    rows = capabilities.rows()
    assert list(rows) == families.__all__
    declared = {name for name in Family.__annotations__ if not name.startswith("_")}
    assert declared <= {*capabilities.columns(), *capabilities.NOT_CAPABILITIES}


@pytest.mark.parametrize("column", capabilities.columns())
def test_blank_cells_have_a_reason(column: str) -> None:
    place = capabilities.columns().index(column)
    blank = any(not row[place] for row in capabilities.rows().values())
    assert blank == (column in capabilities.BLANK)


def test_cells_are_what_families_declare() -> None:
    assert capabilities.cell(families.Normal, "gaussian") == "number"
    assert capabilities.cell(families.Wishart, "precision") == "matrix"
    assert capabilities.cell(families.Poisson, "counts") == "yes"
    assert capabilities.cell(families.Poisson, "nominal") == ""
    assert capabilities.cell(families.Categorical, "quantile") == ""
