"""Sphinx settings of the report. ``python -m cdfsg report`` copies this folder, adds what it generates, and builds."""

project = "cdfsg"
html_title = "cdfsg: does the paper hold?"
root_doc = "index"
exclude_patterns = ["generated"]  # parts that pages include
language = "en"

extensions = ["myst_nb"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
nb_execution_mode = "off"  # the stored outputs are what was published, and `make test` compares them with a new run

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["verdicts.css", "site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_domain_indices = False
html_use_index = False

# A file of the site itself, so that formulas need no network; all of TeX's extensions are inside.
mathjax_path = "mathjax/tex-svg-full.js"
# Line breaks are the author's; a formula that is wider than a phone scrolls inside its own box.
mathjax3_config = {"svg": {"fontCache": "local"}}
