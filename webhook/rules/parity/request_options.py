"""The options of a write: kubernetes/apimachinery `pkg/apis/meta/v1/validation/validation.go`."""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.api.field import FieldError, invalid, not_supported, too_long
from webhook.api.formats import byte_length
from webhook.api.request import Operation, Options
from webhook.rules.change import Change
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.rule import ANY_OPERATION, BOTH, Rule

LONGEST_MANAGER: Final = 128
"""Bytes of fieldManager."""

_LONGEST_READ: Final = 4096
"""Characters of a name that is too long in which one that is not printable is looked for."""

_DRY_RUN: Final = ("All",)
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")


def options_are_legal(change: Change) -> Iterable[Finding]:
    """Options must be those that the API server takes: dryRun, fieldManager, fieldValidation, deletion."""
    options = change.request.options
    wrong: list[FieldError] = []
    # Most writes carry options without content, so nothing is asked of those.
    if options.dry_run or options.field_manager or options.field_validation:
        wrong += _wrong_write_options(options)
    if change.request.operation is Operation.DELETE:
        wrong += _wrong_delete_options(options)
    return tuple(Finding(error) for error in wrong) if wrong else NOTHING


def _wrong_write_options(options: Options) -> Iterator[FieldError]:
    if options.dry_run and any(value not in _DRY_RUN for value in options.dry_run):
        yield not_supported("dryRun", ", ".join(options.dry_run), _DRY_RUN)
    if options.field_manager:
        yield from _wrong_manager(options.field_manager)
    if options.field_validation not in {None, *_FIELD_VALIDATION}:
        yield not_supported("fieldValidation", options.field_validation or "", _FIELD_VALIDATION)


def _wrong_manager(manager: str) -> Iterator[FieldError]:
    if byte_length(manager) > LONGEST_MANAGER:
        yield too_long("fieldManager", f"may not be more than {LONGEST_MANAGER} bytes")
        manager = manager[:_LONGEST_READ]
    if manager.isprintable():
        return
    # Upstream names every such character; the first is enough to find the mistake. Positions count bytes.
    before = next((index for index, character in enumerate(manager) if not _is_printable(character)), None)
    if before is not None:
        detail = f"invalid character U+{ord(manager[before]):04X} (at position {byte_length(manager[:before])})"
        yield invalid("fieldManager", manager, detail)


def _is_printable(character: str) -> bool:
    # The API server's Unicode tables may be newer than Python's, and a renewal must not stop at a new emoji.
    return character.isprintable() or unicodedata.category(character) == "Cn"


def _wrong_delete_options(options: Options) -> Iterator[FieldError]:
    seconds, policy = options.grace_period_seconds, options.propagation_policy
    if seconds is not None and seconds < 0:
        yield invalid("gracePeriodSeconds", seconds, "must be greater than or equal to 0")
    if policy is not None and options.orphan_dependents is not None:
        yield invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
    if policy is not None and policy not in _PROPAGATION:
        yield not_supported("propagationPolicy", policy, (*_PROPAGATION, "nil"))
    preconditions = options.preconditions or {}
    if preconditions.get("uid") == "":
        yield invalid("preconditions.uid", "", "must not be empty")
    version = preconditions.get("resourceVersion")
    if version is not None and not (version.isascii() and version.isdecimal()):
        yield invalid("preconditions.resourceVersion", version, "must be a decimal number")


RULES: Final = (
    Rule(
        id="request-options",
        check=options_are_legal,
        resources=BOTH,
        operations=ANY_OPERATION,
        source="kubernetes/apimachinery pkg/apis/meta/v1/validation/validation.go",
        parity=True,
    ),
)
