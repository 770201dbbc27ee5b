"""Bytes of any kind - reviews, manifests, dumps, watches, audit logs - become items, each with its place."""


class InputError(Exception):
    """An input cannot be used at all; the text is one line."""
