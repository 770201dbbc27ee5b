"""Each sentence of the API reference that can be broken by a write is enforced, in each version that has it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.audit.test_checks import audited
from tests.factories import (
    NOW,
    Document,
    as_version,
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from tools.docs.pages import ROOT, find_anchors
from webhook.admission.policy.parse import parse
from webhook.kubernetes.objects import list_versions
from webhook.server.reviewer import respond

SENTENCES: Final = yaml.safe_load((Path(__file__).parents[1] / "data" / "api-sentences.yaml").read_text())
STRICT = parse("apiVersion: lease-webhook/v1\npreset: strict\n")
BOUND = parse("""apiVersion: lease-webhook/v1
preset: strict
bindings:
- namespace: shop
  lease: checkout
  writers: [shop/other]
  holder: ["*"]
""")
SECOND = 1_000_000


def cases(key: str) -> Iterator[Any]:
    for kind, sentences in SENTENCES.items():
        for entry in sentences:
            for number, case in enumerate(entry.get(key, ())):
                for version in case.get("versions", list_versions(kind) if kind == "LeaseCandidate" else ["v1"]):
                    yield pytest.param(kind, version, case, id=f"{kind} {version}: {entry['sentence']}, {number}")


def review_of(kind: str, version: str, case: Document) -> Document:
    """Start from a valid object of that version, and change what the case says."""
    stored = make_lease() if kind == "Lease" else make_candidate(as_version(version))
    stored = changed(stored, *(put(path, value) for path, value in case.get("old", {}).items()))
    written = changed(
        stored, *map(drop, case.get("drop", ())), *(put(path, value) for path, value in case.get("put", {}).items())
    )
    operation = case.get("operation", "CREATE")
    review = [put(path, value) for path, value in case.get("review", {}).items()]
    return make_review(
        *review, new=None if operation == "DELETE" else written, old=None if operation == "CREATE" else stored
    )


@pytest.mark.parametrize(("kind", "version", "case"), [*cases("writes")])
def test_a_write_is_answered_as_the_sentence_says(kind: str, version: str, case: Document) -> None:
    policy = BOUND if case.get("bound") else STRICT
    verdict = respond(to_bytes(review_of(kind, version, case)), policy, NOW + 4 * SECOND).verdict
    assert verdict is not None
    if case.get("allowed"):
        assert verdict.allowed, verdict.message
        return
    assert (verdict.allowed, verdict.code) == (False, case["code"]), verdict
    denying = {result.rule for result in verdict.findings if result.mode.word == "deny"}
    assert not case["denied"] or case["denied"] in denying


AUDITED = [
    pytest.param(entry["audited"], id=entry["sentence"]) for entry in SENTENCES["LeaseCandidate"] if "audited" in entry
]


@pytest.mark.parametrize("example", AUDITED)
def test_a_state_is_reported_as_the_sentence_says(example: tuple[list[list[str]], list[str]]) -> None:
    lists, expected = example
    candidates = [
        make_candidate(as_version("v1alpha1"), put("metadata.name", f"c{number}"), put("spec.preferredStrategies", one))
        for number, one in enumerate(lists)
    ]
    assert [finding.check for finding in audited(*candidates)] == expected


PAGES = [
    pytest.param(entry["page"], id=entry["sentence"])
    for sentences in SENTENCES.values()
    for entry in sentences
    if "page" in entry
]


@pytest.mark.parametrize("place", PAGES)
def test_what_no_webhook_enforces_is_documented_where_a_reader_would_look(place: str) -> None:
    page, _, anchor = place.partition("#")
    assert anchor in find_anchors(ROOT / page)


def test_no_sentence_is_without_evidence() -> None:
    every = [entry for sentences in SENTENCES.values() for entry in sentences]
    assert [entry["sentence"] for entry in every if not entry.keys() & {"writes", "audited", "page"}] == []
