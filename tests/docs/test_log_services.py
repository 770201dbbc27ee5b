"""The table of docs/why.md has the log services whose deliveries are read."""

from tools.docs import log_services


def test_the_table_has_the_services() -> None:
    assert log_services.PAGE.read_text() == log_services.make_page(), "write it again: make docs"
