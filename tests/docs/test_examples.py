"""Each command that a page shows prints what the page shows."""

import pytest

from tools.docs.commands import WIDTH, can_run_here, compute_output
from tools.docs.pages import README, ROOT, Example, find_examples, find_pages

EXAMPLES = [
    pytest.param(example, id=f"{example.page.name}: {example.command[-60:]}")
    for page in find_pages()
    for example in find_examples(page)
    if can_run_here(example)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_command_prints_what_the_page_shows(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", WIDTH)
    assert compute_output(example) == example.output, "write it again: make docs"


def test_the_readme_shows_a_denied_review() -> None:
    (denied,) = (example.output for example in find_examples(README) if example.command.startswith("curl"))
    assert denied.startswith("spec.holderIdentity: Forbidden: ")
