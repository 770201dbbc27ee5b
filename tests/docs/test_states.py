"""The states of a connection are shown as their table has them."""

from tools.docs import states


def test_the_diagram_is_that_of_the_table() -> None:
    assert states.PAGE.read_text() == states.make_page(), "write it again: make docs"
