"""Links between the documents lead somewhere: in the source, and where `make install` puts them."""

import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import BUILD, ROOT  # noqa: E402
from pages import text_of  # noqa: E402

pytestmark = pytest.mark.sqlite_only("no store is used")


def pages_below(folder):
    for at, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        yield from (os.path.join(at, name) for name in names if name.endswith(".md"))


def anchors(page):
    """What headings are called in links."""
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    for title in re.findall(r"^#+ (.*)$", prose, re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def dead_links(folder):
    for page in pages_below(folder):
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target) or (anchor and anchor not in anchors(target)):
                yield f"{os.path.relpath(page, folder)}: {link}"


def test_no_link_of_the_source_is_dead():
    assert len(list(pages_below(os.path.join(ROOT, "docs")))) >= 20
    assert list(dead_links(ROOT)) == []


def test_no_link_of_what_is_installed_is_dead(tmp_path):
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], check=True,
                   env={**os.environ, "DESTDIR": str(tmp_path)})
    [readme] = [page for page in pages_below(tmp_path) if page.endswith("doc/glia/README.md")]
    assert list(dead_links(os.path.dirname(readme))) == []
