"""Sphinx settings of the report. ``python -m cdfsg report`` copies this folder, adds what it generates, and builds."""

import re
from importlib.metadata import metadata

project = "cdfsg"
html_title = "cdfsg: does the paper hold?"
root_doc = "index"
exclude_patterns = ["generated", "templates"]  # parts that pages include or are made from
templates_path = ["templates"]
language = "en"
smartquotes_action = "D"  # dashes only: the prime of X'MX is no quotation mark

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon",
              "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 2  # the README's answer has links to sections
viewcode_line_numbers = True
viewcode_follow_imported_members = False  # else the list of modules has one of builtins, without a page
_SAID = "The paper's runs, made again from the original data: what replicates, what does not, and how sure that is."
myst_html_meta = {
    "description": _SAID, "property=og:description": _SAID, "property=og:title": html_title,
    "property=og:type": "website", "property=og:image": "_static/card.png", "twitter:card": "summary",
}  # fmt: skip
nb_execution_mode = "off"  # the stored outputs are what was published, and `make test` compares them with a new run

# The reference is made of the docstrings (numpydoc), which give types together with shapes and units.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries = False  # each of the menus on all pages would be built with every function in it
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # which may have several names before a colon
napoleon_use_param = False  # types are words: as links, an "array (n, p)" would lead to whatever else is called n
napoleon_use_rtype = False
default_role = "py:obj"  # a name in single backticks is a link where it is an object, and else is set as code

html_theme = "furo"
_LINKS = (entry.split(", ", 1) for entry in metadata("cdfsg").get_all("Project-URL") or ())  # [project.urls]
html_theme_options = {"footer_icons": [{"name": name, "url": url, "html": name, "class": ""} for name, url in _LINKS]}
html_static_path = ["_static"]
html_css_files = ["verdicts.css", "site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_search_summary = False  # opened from disk, a page may not read the others for excerpts
html_favicon = "_static/favicon.svg"
html_domain_indices = False
html_use_index = False

# A file of the site itself, so that formulas need no network; all of TeX's extensions are inside.
mathjax_path = "mathjax/tex-svg-full.js"
# Line breaks are the author's; a formula that is wider than a phone scrolls inside its own box.
mathjax3_config = {"svg": {"fontCache": "local"}}


# Prose and what must stay as it is: literals, roles, displayed formulas.
_KEPT = re.compile(r"(``.+?``|`.+?`|^ *\.\. math::.*?(?=\n *\n *\S|\Z))", re.DOTALL | re.MULTILINE)


def escape_bars(app, what, name, obj, options, lines):
    """Let absolute values in the prose of a docstring, as in |t|, not be taken for substitutions."""
    parts = _KEPT.split("\n".join(lines))
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")


def make_accessible(app, page, template, context, doctree):
    """Let boxes that scroll have the focus, and give the heads of the menu the level that the theme leaves out."""
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = re.sub(r'<div class="(?=table-wrapper|wide)', '<div tabindex="0" class="', body)
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("html-page-context", make_accessible, priority=900)  # after the theme
