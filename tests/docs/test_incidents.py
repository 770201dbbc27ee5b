"""docs/incidents.md says what `why` says."""

from tools.docs.incident_page import PAGE, make_page


def test_the_page_is_as_the_recordings_and_the_code_say() -> None:
    assert PAGE.read_text() == make_page(), "write it again: make docs"
