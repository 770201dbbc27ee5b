"""A wrong wording is shown with its differences, although the comparison is in a helper."""

import pytest

# Here, because modules elsewhere import from this package before pytest reads a conftest.py of it.
pytest.register_assert_rewrite("tests.rules.wording")
