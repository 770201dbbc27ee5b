"""A wrong wording is shown with its differences, although the comparison is in a helper."""

import pytest

pytest.register_assert_rewrite("tests.rules.wording")
