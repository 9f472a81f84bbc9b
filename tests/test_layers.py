"""The architecture page is true to the imports, and no two files import each other."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("svmp", cache_dir=None)


def test_no_files_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    """Imports for types and imports inside functions count."""
    packages = {m for m in graph.modules if graph.find_children(m)}
    imports = {
        m: {i for i in graph.find_modules_directly_imported_by(m) if i not in packages}
        for m in graph.modules - packages
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))
