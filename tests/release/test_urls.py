"""What a package index shows: metadata with addresses, and a README whose links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.release.package import ROOT, list_supported, read_project
from tools.release.urls import add_urls, make_links_absolute

URL = "https://git.example/platform/lease-webhook"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[a](docs/a.md#b)", "[a](P/docs/a.md#b)", id="a page"),
        pytest.param("![a path](docs/a.svg)", "![a path](R/docs/a.svg)", id="a picture"),
        pytest.param("[a](#b)", "[a](#b)", id="a heading of this page"),
        pytest.param("[a](https://a.example/b)", "[a](https://a.example/b)", id="an address"),
    ],
)
def test_relative_links_become_absolute(text: str, expected: str) -> None:
    assert make_links_absolute(text, "P", "R") == expected


def test_a_tree_with_addresses(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    add_urls(tmp_path, URL, "1.2.3")
    written = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    urls = written["project"].pop("urls")
    assert written == tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert urls["Homepage"] == URL
    links = re.findall(r"\]\(([^)\s]+)\)", (tmp_path / "README.md").read_text())
    assert links
    for link in links:
        assert link.startswith(("https://", "#"))
        if local := re.match(rf"{URL}/(?:blob|raw|tree)/v1\.2\.3/([^#]+)", link):
            assert (ROOT / local[1]).exists()


def test_the_classifiers_promise_what_the_requirement_says() -> None:
    assert read_project()["requires-python"] == ">=3.11"
    assert list_supported() == ["python3.11", "python3.12", "python3.13", "python3.14"]
