"""The tests, a package so that they share `tests.factories` and `tests.acceptance`."""
