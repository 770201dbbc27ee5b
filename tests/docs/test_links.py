"""No link and no path in a document leads nowhere."""

import re
from pathlib import Path

import pytest

from tools.docs.pages import DOCS, README, ROOT, extract_prose, find_anchors, find_pages

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in find_pages()]
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_PATH = re.compile(
    r"`((?:webhook|tests|lab|tools(?=/(?:docs|release|rendered|site|web)/)|docs|deploy|certs|\.ci)/[\w./-]*\w/?)`"
)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in _LINK.findall(extract_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        assert not anchor or anchor in find_anchors(file), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_every_path_in_a_page_exists(page: Path) -> None:
    for path in _PATH.findall(extract_prose(page)):
        assert (ROOT / path).exists(), path


def test_every_page_of_the_documentation_can_be_found() -> None:
    index = DOCS / "README.md"
    linked = {
        (DOCS / target).resolve() for target, _ in _LINK.findall(index.read_text()) if not target.startswith("http")
    }
    assert {page for page in find_pages() if page.parent == DOCS and page != index} <= linked


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in {target for target, _ in _LINK.findall(README.read_text())}
