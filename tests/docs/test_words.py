"""The documents, and what the code says of itself, use the words of the field, in American spelling."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.docs.pages import ROOT, pages, prose

AVOIDED = {
    "deny, evaluate, report": r"judg(e|ed|es|ing|ment)s?",
    "fix, correct": r"mend(s|ed|ing)?",
    "again": r"anew",
    "permanently": r"for ever",
    "color, behavior, license": r"(colour|behaviour|licence|honour|favour|programme|catalogue|cancelled|recognise)\w*",
    "anyone, no one": r"(any|no|some)body",
    "expired": r"r[au]n out",
    "say, report": r"tell(s|ing)?|told",
    "steal": r"theft|thie(f|ves)",
    "pause": r"(stand(s|ing)?|stood) still",
}
_ANY = re.compile(rf"\b({'|'.join(AVOIDED.values())})\b", re.IGNORECASE)
PAGES = [
    pytest.param(page, id=str(page.relative_to(ROOT)))
    for page in pages()
    if page.name != "RESULTS.md" and "data/recordings" not in str(page)
]


MODULES = sorted((ROOT / "webhook").rglob("*.py"))


def avoided_words(text: str) -> list[str]:
    """The words of a text that have a better one, with that."""
    if not _ANY.search(text):
        return []
    return [
        f'"{found}": write {better}'
        for better, avoided in AVOIDED.items()
        for found in (match[0] for match in re.finditer(rf"\b{avoided}\b", text, re.IGNORECASE))
    ]


def remarks(module: Path) -> Iterator[str]:
    """The comments and docstrings of a module, also those of attributes."""
    text = module.read_text()
    if not avoided_words(text):
        return  # To tokenize all modules takes seconds.
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield docstring


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    assert avoided_words(prose(page)) == []


def test_docstrings_and_comments_use_the_words_of_the_field() -> None:
    found = {str(module.relative_to(ROOT)): avoided_words("\n".join(remarks(module))) for module in MODULES}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_remark_with_another_word_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""It ran out."""\n\nX = "anybody"\n"""Nobody."""\nY = 1  # for ever\n')
    assert avoided_words("\n".join(remarks(module))) == [
        '"for ever": write permanently',
        '"Nobody": write anyone, no one',
        '"ran out": write expired',
    ]
