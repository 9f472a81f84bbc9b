"""Settings of Sphinx. `docs/site/build.py` copies this file beside the sources it gathers."""

from __future__ import annotations

import re
from importlib.metadata import version as installed
from shutil import which

from docutils import nodes
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
    """Leave out what says nothing to a reader: types that NumPy spells out, and defaults' reprs.

    Classes of results are not made by users: how they are made is left out.
    """
    if signature is None:
        return None
    if what == "class" and app.env.docname in RESULTS:
        return "", None
    for long, short in SHORTENED:
        signature = re.sub(long, short, signature)
        returned = returned and re.sub(long, short, returned)
    return signature, returned


def link_pages(app, what, name, obj, options, lines):
    """Link the pages, scripts and public names that a docstring mentions."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = PAGE.sub(r":doc:`/\1`", line)
            line = SCRIPT.sub(r":doc:`/gallery/\1`", line)
            lines[place] = PUBLIC.sub(r":py:obj:`\1`", line)


def join_fields(app, what, name, obj, options, lines):
    """Describe parameters and attributes that share a description once, as in the docstring.

    Napoleon repeats the description of parameters, and takes attributes but the last for a type.
    """
    joined: list[list[str]] = [[]]
    for line in lines:
        if FIELD.match(line) or not line.startswith(" "):
            joined.append([])
        joined[-1].append(line)
    found: list[list[str]] = []
    for field in joined:
        this = FIELD.match(field[0]) if field else None
        last = FIELD.match(found[-1][0]) if found and found[-1] else None
        if (
            this
            and last
            and this["kind"] == last["kind"]
            and _text(this, field) == _text(last, found[-1])
        ):
            names = f"{last['names']}, {this['names']}"
            found[-1][0] = f":{this['kind']} {names}:{this['rest']}"
        else:
            found.append(field)
    for field in found:
        this = FIELD.match(field[0]) if field else None
        if this:
            names = this["names"].replace(", ", f",{SPACE}")
            field[0] = f":{this['kind']} {names}:{this['rest']}"
    lines[:] = [line for field in found for line in field]


def _text(field, lines):
    """Return the description of a field."""
    return [field["rest"].strip(), *(line.strip() for line in lines[1:])]


def name_the_fields(app, doctree):
    """Replace the marks between names of one field, and Sphinx's word for attributes."""
    for text in list(doctree.findall(nodes.Text)):
        if SPACE in text:
            text.parent.replace(text, nodes.Text(text.replace(SPACE, " ")))
    for field in doctree.findall(nodes.field_name):
        if field.astext() == "Variables":
            field.children = [nodes.Text("Attributes")]


SPACE = "\u2060"
"""Stands for a space in a field's name, where Sphinx would take what is before it for a type."""
FIELD = re.compile(r":(?P<kind>param|ivar) (?P<names>[*\w\\]+(?:, [*\w\\]+)*):(?P<rest>.*)")
PAGE = re.compile(r"docs/(\w+)\.md(?!#)")
SCRIPT = re.compile(r"docs/gallery/(\d\d_\w+)\.py")
PUBLIC = re.compile(r"`(svmp(?:\.\w+)+)`")
RESULTS = ("api/fitting",)
"""Pages of classes that svmp makes."""
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
    app.connect("autodoc-process-docstring", link_pages, priority=200)
    app.connect("autodoc-process-docstring", join_fields, priority=900)
    app.connect("doctree-read", name_the_fields)
