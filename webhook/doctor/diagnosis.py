"""A finding of the doctor: the place, the risk, and what to change."""

from msgspec import Struct


class Diagnosis(Struct, frozen=True):
    """One danger in a configuration.

    `check` is a kebab-case name that tools may match on; `place` is a field path with its value, as in the document;
    `risk` and `cure` are each one or two sentences.
    """

    check: str
    place: str
    risk: str
    cure: str
