"""The site: which pages it has, and how their Markdown is changed; `make site` builds it, and checks its links."""

from pathlib import Path

import pytest
import yaml

from tools.docs.pages import DOCS, ROOT
from tools.site.staging import convert, expand, find_links, find_reachable, list_pages, write_stage


def nav() -> list[object]:
    text = (ROOT / "tools" / "site" / "mkdocs.yml").read_text()
    nav: list[object] = yaml.safe_load(text.partition("\nnav:")[2])
    return nav


def test_each_page_is_in_the_navigation_once() -> None:
    pages = [path for path in find_reachable() if path.endswith(".md")]
    named = [*list_pages(expand(nav(), find_reachable()))]
    assert sorted(set(pages) - set(named)) == [], "a page needs a place in tools/site/mkdocs.yml"
    assert sorted(named) == sorted(pages)
    assert {str(path.relative_to(ROOT)) for path in DOCS.glob("*.md")} <= set(pages)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("```sh needs=cluster\nmake\n```", "```sh\nmake\n```", id="words behind a language"),
        pytest.param("```mermaid\na --> b\n```", "```text\na --> b\n```", id="a diagram is its text"),
        pytest.param("Rows:\n| a |\n|---|", "Rows:\n\n| a |\n|---|", id="a table after a line"),
        pytest.param("Items:\n- a\n- b", "Items:\n\n- a\n- b", id="a list after a line"),
        pytest.param("- a\n\n  ```sh\n  x\n  ```", "- a\n\n    ```sh\n    x\n    ```", id="code in an item"),
        pytest.param("1. a\n   more", "1. a\n    more", id="a second line of a numbered item"),
        pytest.param("- a\n\ntext\n  more", "- a\n\ntext\n  more", id="a line after a list"),
        pytest.param("```\n| a\nb\n- c\n  d\n```", "```\n| a\nb\n- c\n  d\n```", id="code stays"),
    ],
)
def test_markdown_of_github_becomes_that_of_the_site(text: str, result: str) -> None:
    assert convert(text) == f"{result}\n"


def test_links_in_code_lead_nowhere() -> None:
    text = "[a](a.md#b) `[c](c.md)` [d](https://d.example)\n```\n[e](e.md)\n```\n![f](f.png)"
    assert [*find_links(text)] == ["a.md", "f.png"]


def test_what_pages_lead_to_is_there_and_a_folder_is_its_readme(tmp_path: Path) -> None:
    for path, text in {
        "README.md": "[docs](docs/README.md) [x](more) [gone](gone.md)",
        "docs/README.md": "[code](../code.py)",
        "code.py": "pass\n",
        "more/README.md": "",
        "more/a.txt": "",
        "unlinked.md": "",
    }.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    staged = write_stage(tmp_path / "pages", tmp_path / "tree")
    assert staged == {"README.md", "docs/README.md", "code.py", "more/README.md", "more/a.txt"}
    assert "[x](more/README.md) [gone](gone.md)" in (tmp_path / "pages" / "README.md").read_text()


def test_a_folder_of_the_navigation_is_its_pages_by_their_names() -> None:
    paths = {"r/b.md", "r/README.md", "r/a.md", "r/c.txt", "s/d.md"}
    assert expand([{"R": "r/"}], paths) == [{"R": ["r/README.md", {"a": "r/a.md"}, {"b": "r/b.md"}]}]
