"""Every claim that is made is of a kind that is listed, and says no more than that kind does."""

import json

import pytest

from tests.claims.test_measured_incidents import EACH, SOURCES, explain_source
from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.claims.claim import make_claim_json
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.registry import CAUSES, KINDS, PROBLEMS, SUBJECTS
from webhook.cli.main import main

EVERY_SOURCE = pytest.mark.parametrize(
    "source",
    [pytest.param(one, marks=[pytest.mark.slow] if one in {"metadata", "three"} else []) for one in SOURCES],
)
COMMON = {"claim", "severity", "text", "ongoing"}


def test_no_kind_is_listed_twice() -> None:
    assert len(KINDS) == sum(map(len, SUBJECTS.values()))


@EVERY_SOURCE
@EACH
def test_each_claim_says_what_its_kind_allows(name: str, source: str) -> None:
    for claim in find_claims(explain_source(name, source)):
        written = make_claim_json(claim)
        assert set(written) - COMMON <= set(KINDS[claim.check].arguments), written
        assert {written.get("cause"), *written.get("causes", ())} - {None} <= set(CAUSES), written


@EVERY_SOURCE
@EACH
def test_each_finding_has_a_severity_of_its_kind(name: str, source: str) -> None:
    for finding in explain_source(name, source).findings:
        assert finding.check in STORED_RULES or finding.severity in PROBLEMS[finding.check].severities, finding


@EACH
def test_an_interval_does_not_end_before_it_begins(name: str) -> None:
    for claim in find_claims(explain_source(name, "both")):
        written = make_claim_json(claim)
        for first, last in (("earliest", "latest"), ("from", "to")):
            if first in written and last in written:
                assert written[first] <= written[last], written


def test_a_claim_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "leader-lost"]) == 0
    assert KINDS["leader-lost"].means[:40] in " ".join(capsys.readouterr().out.split())
    assert main(["claims"]) == 0
    listed = capsys.readouterr().out
    assert all(id_ in listed for id_ in KINDS)
    assert main(["claims", "--format", "json"]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == list(KINDS)


def test_a_claim_that_is_no_claim_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "leader-los"]) == 2
    assert "did you mean leader-lost?" in capsys.readouterr().err
