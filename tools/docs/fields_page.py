"""The page docs/fields.md, made from the fields of the registry of rules."""

from collections.abc import Iterable, Iterator
from typing import Final

from tools.docs.pages import DOCS
from webhook.admission.rules.fields import CANDIDATE_FIELDS, LEASE_FIELDS, METADATA_FIELDS, OPTION_FIELDS, Field

PAGE: Final = DOCS / "fields.md"
_INTRODUCTION: Final = """<!-- Written by `make docs` from webhook/admission/rules/fields.py. Do not edit. -->
# Fields

What each field of a Lease and of a LeaseCandidate means, who writes it in an ordinary election, and which rules read
it.
Times of type MicroTime have six fraction digits. For an API server, an absent field and `null` are the same.

An API server converts an object into each version that it serves, so the versions differ only in what is named here:
Lease v1 and v1beta1 in nothing; LeaseCandidate v1alpha1 (Kubernetes 1.31) has `preferredStrategies` where v1alpha2 and
v1beta1 have `strategy`, and does not require `binaryVersion`."""
_METADATA: Final = """Both kinds have the metadata of every object. Rules read these parts of it."""
_OPTIONS: Final = """The options of a request arrive with its review. A webhook does not see all of them:

- A patch and an apply arrive with the options of an update or a create. `force`, which only an apply may set, and an
  apply without a `fieldManager`, are refused by the API server itself (422).
- `pretty`, and everything about `get`, `list` and `watch`, is never sent to a webhook. `audit --in-cluster` and
  `record --in-cluster` read lists in pages (`limit`, `continue`); if the API server no longer knows the state of the
  first pages (410), the audit goes on with the present state, and the recorder begins its list again."""


def make_page() -> str:
    """Return the text of the page."""
    return "\n".join(_list_lines()) + "\n"


def make_anchor(field: Field) -> str:
    """Return the anchor of a field on the page."""
    return _format_heading(field).lower().replace(",", "").replace(".", "").replace("`", "").replace(" ", "-")


def _format_heading(field: Field) -> str:
    return f"{field.kind} {field.path.removeprefix('spec.')}".strip()


def _list_lines() -> Iterator[str]:
    yield from (_INTRODUCTION, "")
    yield "| field | of | required | rules |"
    yield "|---|---|---|---|"
    for field in (*LEASE_FIELDS, *CANDIDATE_FIELDS):
        required = _REQUIRED.get(field.path if field.kind == "LeaseCandidate" else "", "")
        of = f"{field.kind} {', '.join(field.versions)}" if field.versions else field.kind
        count = sum(1 for _ in field.rules)
        yield f"| [`{field.path}`](#{make_anchor(field)}) | {of} | {required} | {count} |"
    for title, introduction, fields in (
        ("The spec of a Lease", "", LEASE_FIELDS),
        ("The spec of a LeaseCandidate", "", CANDIDATE_FIELDS),
        ("Metadata", _METADATA, METADATA_FIELDS),
        ("Options of a request", _OPTIONS, OPTION_FIELDS),
    ):
        yield from ("", f"## {title}")
        if introduction:
            yield from ("", introduction)
        yield from _describe(fields)


_REQUIRED: Final = {
    "spec.leaseName": "yes, immutable",
    "spec.strategy": "yes",
    "spec.preferredStrategies": "yes",
    "spec.binaryVersion": "v1alpha2, v1beta1: yes; v1alpha1: with OldestEmulationVersion",
    "spec.emulationVersion": "with OldestEmulationVersion",
}


def _describe(fields: Iterable[Field]) -> Iterator[str]:
    for field in fields:
        yield from ("", f"### {_format_heading(field)}", "", field.meaning, "")
        yield from ("| | |", "|---|---|", f"| type | {field.type} |")
        if field.kind:
            yield f"| versions | {', '.join(field.served)} |"
        yield f"| written by | {field.written_by} |"
        yield f"| example | `{field.example}` |"
        rules = ", ".join(f"[`{rule.id}`](rules/{rule.id}.md)" for rule in field.rules)
        yield f"| read by | {rules} |"
