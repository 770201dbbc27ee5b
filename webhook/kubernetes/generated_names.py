"""The characters of the names that Kubernetes generates, such as the last part of a pod's."""

from typing import Final

GENERATED: Final = "[bcdfghjklmnpqrstvwxz2456789]"
"""A class of a regular expression; vowels and what looks like one are left out.

Source: `String` of apimachinery `pkg/util/rand`, and `SafeEncodeString` for the hash of a template.
"""
