"""docs/incidents.md says what `why` says."""

from tools.docs.incident_page import PAGE, page


def test_the_page_is_as_the_recordings_and_the_code_say() -> None:
    assert PAGE.read_text() == page(), "write it again: make docs"
