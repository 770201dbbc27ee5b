"""Errors that a command reports in one line and without a traceback."""


class InputError(Exception):
    """An input cannot be used at all; the text is one line."""
