"""Settings of Sphinx. `docs/site/build.py` copies this file beside the sources it gathers."""

from __future__ import annotations

import re
from importlib.metadata import version as installed
from shutil import which

from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.util.nodes import make_refnode

project = "svmp"
author = "the svmp authors"
copyright = author
version = release = installed("svmp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
if which("dot"):
    extensions.append("sphinx.ext.graphviz")
    graphviz_output_format = "svg"

root_doc = "index"
default_role = "code"
exclude_patterns = ["files"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "svmp"
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    "Array": "ndarray",
    "ArrayLike": "array_like",
    "Floats": "ndarray",
    "Ids": "ndarray",
    "Ints": "ndarray",
    "Keys": "ndarray",
    "Numbers": "ndarray",
    "Steps": "Callable",
}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # as in dict[str, ndarray]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Types of other libraries in signatures: the site is built without a network, and links none.
nitpick_ignore_regex = [("py:class", r"(?!svmp\.).*")]


def name_the_examples(app, what, name, obj, options, lines):
    """Put a heading before examples that follow a section, lest they be read as its rows."""
    underlines = [i for i, line in enumerate(lines) if line and set(line) == {"-"}]
    first = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if underlines and first is not None and first > underlines[0]:
        lines[first:first] = ["Examples", "--------"]


def link_by_public_name(app, env, node, contnode):
    """Link a type in a signature to the public name it is documented by, if it is."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("svmp."):
        return None
    python = env.get_domain("py")
    public = [name for name in python.objects if name.split(".")[-1] == target.split(".")[-1]]
    if len(public) != 1:
        return contnode
    place = python.objects[public[0]]
    return make_refnode(
        app.builder, node["refdoc"], place.docname, place.node_id, contnode, public[0]
    )


def shorten_the_signature(app, what, name, obj, options, signature, returned):
    """Leave out what says nothing to a reader: types that NumPy spells out, and defaults' reprs."""
    if signature is None:
        return None
    for long, short in SHORTENED:
        signature = re.sub(long, short, signature)
    return signature, returned


SHORTENED = [
    (r"~?(\w+\.)*ndarray\[tuple\[.*?\], ~?(\w+\.)*dtype\[.*?\]\]", "ndarray"),
    (r"NDArray\[[\w.]+\]|\b(Floats|Array)\b", "ndarray"),
    (r"\bArrayLike\b", "array_like"),
    (r"\bDims\b", "str | tuple[str, ...] | list[str] | None"),
    (r" = <factory>", " = {}"),
    (r", report: .*?<function <lambda>>", ""),
]


def setup(app):
    app.connect("autodoc-process-signature", shorten_the_signature)
    app.connect("missing-reference", link_by_public_name)
    app.connect("autodoc-process-docstring", name_the_examples, priority=100)
