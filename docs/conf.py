"""The documentation site: `make docs` builds it of these pages.

Nothing is loaded from elsewhere, and the search works in an opened file.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from searchloop.agent import __version__ as VERSION  # noqa: E402

project = "searchloop"
version = release = VERSION
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as on GitHub, so that a link is right in both places
html_theme = "furo"
html_title = f"searchloop {VERSION}"
html_show_copyright = False
html_copy_source = False
smartquotes = False  # or `--open` outside of code would be a dash
html_use_index = False
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "assets" / "search.js")
html_theme_options = {"footer_icons": []}


def fill(app, page, source):
    """Called for each page as it is read; `source` is a list of one text."""
    if page == "index":  # a line FOLDER/* in its navigation: the pages that no other line names
        pages, text = sorted(app.env.found_docs), source[0]
        rest = [page for page in pages if f"\n{page}\n" not in text]
        folder = r"(?m)^(\w+/)\*$"
        source[0] = re.sub(
            folder, lambda m: "\n".join(p for p in rest if p.startswith(m[1])), source[0]
        )
    if page == "about/changes":
        text = (ROOT / "CHANGELOG.md").read_text("utf-8")
        source[0] = text.replace("](docs/", "](../").replace("](README.md", "](../index.md")


# What the theme leaves out: names of its columns, levels of its headings, and by keys no way to
# tables that scroll. Each finds only what it has not changed yet.
MEND = {
    r'(<aside class="sidebar-drawer")>': r'\1 aria-label="All pages">',
    r'(<aside class="toc-drawer[^"]*")>': r'\1 aria-label="This page">',
    r'(role="heading")>': r'\1 aria-level="2">',
    r'(<div class="table-wrapper[^"]*")>': r'\1 tabindex="0">',
    r'(?<!</h1>)(<div id="search-results">)': r"<h1>Search</h1>\1",
}


def mend(app, error):
    """Called when all pages are written."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text("utf-8")
        for found, better in MEND.items():
            text = re.sub(found, better, text)
        path.write_text(text, "utf-8")


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", fill)
    app.connect("build-finished", mend)
