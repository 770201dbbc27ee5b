"""The formats of names, labels and keys: functions from a text to what is wrong with it, in the API server's words.

Wording of kubernetes/apimachinery v0.36 (`pkg/util/validation`, `pkg/api/validate/content`, `pkg/api/validation`).
Lengths count bytes of UTF-8, but the older half of that code says "characters". An empty tuple: the text is valid.
"""

import re
from collections.abc import Callable
from typing import Final

from webhook.text.quoting import cached_if_short

Messages = tuple[str, ...]
Format = Callable[[str], Messages]

VALID: Final[Messages] = ()
MAX_NAME: Final = 253
MAX_LABEL: Final = 63
EMPTY: Final = "must be non-empty"

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY})?"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"

_LABEL_PATTERN: Final = re.compile(_LABEL)
_SUBDOMAIN_CHARACTERS: Final = re.compile("[-.a-z0-9]+")
_KEY_PATTERN: Final = re.compile("[A-Za-z0-9][-A-Za-z0-9_.]*+(?<=[A-Za-z0-9])")
_QUALIFIED_PATTERN: Final = re.compile(f"({_SUBDOMAIN}/)?{_KEY}")
_LABEL_VALUE_PATTERN: Final = re.compile(f"({_KEY_PATTERN.pattern})?")
_CONFIG_KEY_PATTERN: Final = re.compile(_CONFIG_KEY)

_ALPHANUMERIC_ENDS: Final = "and must start and end with an alphanumeric character"
_WITH_DOTS: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"


@cached_if_short(max_entries=1024, max_length=MAX_LABEL)  # every write names one of a few namespaces
def dns_label(value: str) -> Messages:
    """A DNS-1123 label, the form of a namespace's name."""
    if len(value) <= MAX_LABEL and _LABEL_PATTERN.fullmatch(value):
        return VALID
    found = _check_length(value, MAX_LABEL, "characters")
    if _is_subdomain(value):
        return (*found, "must not contain dots") if "." in value else found
    words = (
        f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}"
    )
    return (*found, _explain_pattern(words, _LABEL, "my-name", "123-abc"))


def dns_subdomain(value: str, unit: str = "characters") -> Messages:
    """A DNS-1123 subdomain, the form of a Lease's name; `unit` names what the length counts."""
    if len(value) <= MAX_LABEL and _LABEL_PATTERN.fullmatch(value):
        return VALID  # a label is one, as nearly every name is
    found = _check_length(value, MAX_NAME, unit)
    if _is_subdomain(value):
        return found
    words = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        f"{_ALPHANUMERIC_ENDS}"
    )
    return (*found, _explain_pattern(words, _SUBDOMAIN, "example.com"))


def dns_subdomain_prefix(value: str) -> Messages:
    """The beginning of a generated DNS-1123 subdomain; it may end in a dash."""
    # Upstream's maskTrailingDash puts an "a" in the place of the last two characters.
    return dns_subdomain(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)


def config_map_key(value: str) -> Messages:
    """A key of a ConfigMap, the form of a LeaseCandidate's name, whole or generated."""
    if len(value) <= MAX_NAME and not value.startswith(".") and _CONFIG_KEY_PATTERN.fullmatch(value):
        return VALID
    found = _check_length(value, MAX_NAME, "characters")
    if not _CONFIG_KEY_PATTERN.fullmatch(value):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found = (*found, _explain_pattern(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in {".", ".."}:
        return (*found, f"must not be '{value}'")
    return (*found, "must not start with '..'") if value.startswith("..") else found


@cached_if_short(max_entries=1024, max_length=MAX_NAME)  # a lease is written often
def path_segment(value: str) -> Messages:
    """A name that fits into one segment of a URL's path."""
    return (f"may not be '{value}'",) if value in {".", ".."} else path_segment_prefix(value)


def path_segment_prefix(value: str) -> Messages:
    """The beginning of a generated name that fits into one segment of a URL's path."""
    if "/" not in value and "%" not in value:
        return VALID
    return tuple(f"may not contain '{mark}'" for mark in "/%" if mark in value)


def qualified_name(value: str) -> Messages:
    """A name with an optional DNS subdomain before a slash, the form of label keys, finalizers and strategies."""
    if len(value) <= MAX_LABEL and _QUALIFIED_PATTERN.fullmatch(value):
        return VALID
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        words = _explain_pattern(f"a valid label key {_WITH_DOTS}", _KEY, "MyName", "my.name", "123-abc")
        return (f"{words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    found = VALID
    if slash:
        wrong_prefix = dns_subdomain(prefix, "bytes") if prefix else (EMPTY,)
        found = tuple(f"prefix part {message}" for message in wrong_prefix)
    wrong_name = _check_length(name, MAX_LABEL, "bytes") if name else (EMPTY,)
    if not _KEY_PATTERN.fullmatch(name):
        wrong_name = (*wrong_name, _explain_pattern(_WITH_DOTS, _KEY, "MyName", "my.name", "123-abc"))
    return (*found, *(f"name part {message}" for message in wrong_name))


def annotation_key(value: str) -> Messages:
    """A qualified name in which letters of either case may stand anywhere."""
    # Go lowers U+0130 to a plain "i", Python to an "i" and a combining dot.
    return qualified_name(value.replace("\u0130", "i").lower())


def label_value(value: str) -> Messages:
    """The value of a label; it may be empty."""
    found = _check_length(value, MAX_LABEL, "bytes")
    if _LABEL_VALUE_PATTERN.fullmatch(value):
        return found
    words = f"a valid label must be an empty string or {_WITH_DOTS.removeprefix('must ')}"
    return (*found, _explain_pattern(words, _LABEL_VALUE, "MyValue", "my_value", "12345"))


def count_bytes(value: str) -> int:
    """Return the length of a text in bytes of UTF-8, as Go counts it."""
    return len(value) if value.isascii() else len(value.encode(errors="replace"))


def _is_subdomain(value: str) -> bool:
    # The same as the pattern, without its nested groups, which take seconds for a leaseName of a megabyte of labels.
    dotted = f".{value}."
    has_odd_joint = ".." in dotted or ".-" in dotted or "-." in dotted
    return _SUBDOMAIN_CHARACTERS.fullmatch(value) is not None and not has_odd_joint


def _check_length(value: str, longest: int, unit: str) -> Messages:
    # A character has four bytes at most.
    if 4 * len(value) <= longest or count_bytes(value) <= longest:
        return VALID
    return (f"must be no more than {longest} {unit}",)


def _explain_pattern(words: str, pattern: str, *examples: str) -> str:
    # Upstream joins its examples with a comma, two spaces and an "or".
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"
