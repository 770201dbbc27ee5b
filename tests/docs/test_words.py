"""The documents use the words of the field, in American spelling."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, pages, prose

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
PAGES = [
    pytest.param(page, id=str(page.relative_to(ROOT)))
    for page in pages()
    if page.name != "RESULTS.md" and "data/recordings" not in str(page)
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    text = prose(page)
    for better, avoided in AVOIDED.items():
        found = re.search(rf"\b{avoided}\b", text, re.IGNORECASE)
        if found:
            pytest.fail(f'"{found[0]}": write {better}')
