"""docs/fields.md names every field of every version, and the rules that read it."""

from collections.abc import Iterator

import pytest

from tests.attacks.attack import PRESETS, attacks
from tests.attacks.recorded import reviews_of
from tests.recordings import recordings
from tools.docs.fields_page import PAGE, make_page
from webhook.admission.rules.change import make_change
from webhook.admission.rules.fields import CANDIDATE_FIELDS, FIELDS, LEASE_FIELDS, list_fields
from webhook.admission.rules.registry import CHECKS, RULES_IN_ORDER
from webhook.kubernetes.objects import list_spec_fields, list_versions
from webhook.kubernetes.review import decode

VERSIONS = [(kind, version) for kind in ("Lease", "LeaseCandidate") for version in list_versions(kind)]


def test_the_page_is_as_the_code_says() -> None:
    assert PAGE.read_text() == make_page(), "write it again: make docs"


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_every_field_of_spec_is_described(kind: str, version: str) -> None:
    described = (field for field in (*LEASE_FIELDS, *CANDIDATE_FIELDS) if field.kind == kind)
    paths = {field.path for field in described if version in field.served}
    assert paths == {f"spec.{name}" for name in list_spec_fields(kind, version)}


def test_every_rule_reads_a_field() -> None:
    assert [rule.id for rule in RULES_IN_ORDER if not list_fields(rule)] == []
    described = {path for field in FIELDS for path in field.paths}
    assert {path for rule in RULES_IN_ORDER for path in rule.reads} <= described


def reviews() -> Iterator[tuple[bytes, int]]:
    """Recorded reviews of clients and of attacks, and when they were received."""
    yield from ((one.body, one.received) for one in recordings())
    for attack in attacks():
        for review in reviews_of(attack, PRESETS[0]):
            yield review.body, review.received


def test_a_finding_is_about_a_field_that_its_rule_reads() -> None:
    paths = {rule.id: {path for field in list_fields(rule) for path in field.paths} for rule in RULES_IN_ORDER}
    missing: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for body, received in reviews():
        request = decode(body)
        change = make_change(request, received)
        for rule in CHECKS.find_rules(request.resource, request.operation, change.event):
            for finding in rule.check(change):
                seen.add(rule.id)
                place = finding.error.field
                # A finding may be about all of spec, or of metadata.
                if place not in {"spec", "metadata"} and not any(map(place.startswith, paths[rule.id])):
                    missing.add((rule.id, place))
    assert missing == set()
    assert len(seen) > 20
