"""What stands beside a finding: an event that is past is not said to be over, as if its cause were gone."""

import pytest
from msgspec.structs import replace

from webhook.analysis.claims.claim import Claim, WriteAuthor
from webhook.analysis.claims.findings.ongoing import describe_earlier, describe_end
from webhook.analysis.inputs.items import Writer
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.times import SECOND

NOW = 1_763_640_000 * SECOND  # 2025-11-20T12:00:00Z
MINUTE_AGO = NOW - 60 * SECOND
EVENTS = ("leader-lost", "lease-stolen", "lease-deleted", "holder-removed", "foreign-release", "write-refused")


def make(
    check: str, over_since: int | None = MINUTE_AGO, cause: str = "", when: str = "", **arguments: object
) -> Claim:
    return Claim(
        check=check,
        severity=Severity.WARNING,
        message="it happened",
        over_since=over_since,
        cause=cause,
        when=when,
        arguments=arguments,
    )


@pytest.mark.parametrize("check", EVENTS)
@pytest.mark.parametrize("over_since", [MINUTE_AGO, 0, None])
def test_what_happens_at_a_moment_neither_ends_nor_goes_on(check: str, over_since: int | None) -> None:
    assert describe_end(make(check, over_since), NOW) == ""


@pytest.mark.parametrize(("check", "expected"), [("renewal-late", "ended"), ("identity-shared", "last seen")])
def test_what_lasts_goes_on_or_has_an_end(check: str, expected: str) -> None:
    assert describe_end(make(check), NOW) == f"{expected} 11:59:00Z"
    assert describe_end(make(check, 0), NOW) == "ongoing"
    assert describe_end(make(check, None), NOW) == ""


def test_a_pod_that_took_over_the_name_of_another_did_so_at_a_moment() -> None:
    assert describe_end(make("identity-shared", cause="replaced"), NOW) == ""


def test_a_finding_about_a_stored_object_has_no_end() -> None:
    assert describe_end(ReportFinding("renewal-late", Severity.WARNING, "it is"), NOW) == ""


def test_earlier_findings_are_summed_up_with_their_subject_and_time() -> None:
    lost = make("leader-lost", previous="db-0", identity="db-1", to=MINUTE_AGO)
    late = make("renewal-late", identity="db-2", to=MINUTE_AGO)
    refused = make("write-refused", by=WriteAuthor(Writer("system:serviceaccount:shop:db", "db-3")), to=MINUTE_AGO)
    nameless = make("lease-stolen", None)
    assert describe_earlier([], NOW) == ""
    assert describe_earlier([lost], NOW) == "1 earlier, of db-0 at 11:59:00Z"
    assert describe_earlier([lost, late], NOW) == "2 earlier, the last of db-2 at 11:59:00Z"
    assert describe_earlier([lost], NOW, is_cut=True) == "1 or more earlier, of db-0 at 11:59:00Z"
    assert describe_earlier([refused], NOW) == "1 more: by shop/db from pod db-3, at 11:59:00Z"
    unread = make("read-refused", by=WriteAuthor(Writer("system:serviceaccount:shop:db", "db-3")), to=MINUTE_AGO)
    assert describe_earlier([unread], NOW) == "1 more: by shop/db from pod db-3, at 11:59:00Z"
    unnamed = make("read-refused", by=WriteAuthor(Writer()), to=MINUTE_AGO)
    assert describe_earlier([unnamed], NOW) == "1 more: at 11:59:00Z"
    assert describe_earlier([refused, unnamed], NOW) == "2 more, the last: at 11:59:00Z"
    assert describe_earlier([nameless], NOW) == "1 earlier"
    assert describe_earlier([nameless, nameless], NOW) == "2 earlier"
    assert describe_earlier([ReportFinding("lease-duration", Severity.WARNING, "x")] * 2, NOW) == "2 more"


def test_a_finding_that_stands_for_many_requests_says_how_many() -> None:
    many = make(
        "write-refused", by=WriteAuthor(Writer("system:serviceaccount:shop:db", "db-3")), to=MINUTE_AGO, count=43
    )
    assert describe_earlier([many], NOW) == "1 more: 43 by shop/db from pod db-3, the last one at 11:59:00Z"
    assert describe_earlier([many, many], NOW, is_cut=True) == (
        "at least 2 more, the last: 43 by shop/db from pod db-3, the last one at 11:59:00Z"
    )
    bound = replace(many, message="at least 43 writes were refused")
    assert describe_earlier([bound], NOW) == "1 more: at least 43 by shop/db from pod db-3, the last one at 11:59:00Z"
    assert describe_earlier([make("read-refused", None)], NOW) == "1 more"


def test_an_earlier_removal_names_who_did_it_and_to_whom() -> None:
    by = WriteAuthor(Writer("system:serviceaccount:shop:db", "db-3"))
    removed = make("foreign-release", previous="db-0", by=by, to=MINUTE_AGO)
    assert describe_earlier([removed], NOW) == ("1 earlier, by shop/db from pod db-3, which removed db-0, at 11:59:00Z")


def test_an_earlier_deletion_names_who_deleted_the_lease_and_when_not_whose_it_was() -> None:
    known = WriteAuthor(Writer("system:serviceaccount:shop:db", "db-3"))
    deleted = make("lease-deleted", previous="db-0", by=known, when="at 11:58:58Z")
    assert describe_earlier([deleted], NOW) == "1 earlier, by shop/db from pod db-3 at 11:58:58Z"
    seen = make("lease-deleted", previous="db-0", by=WriteAuthor(), when="between 11:58:58Z and 11:59:00Z")
    assert describe_earlier([seen], NOW) == "1 earlier, between 11:58:58Z and 11:59:00Z"
    undated = make("lease-deleted", previous="db-0", by=known)
    assert describe_earlier([seen, undated], NOW) == "2 earlier, the last by shop/db from pod db-3"
    assert describe_earlier([make("lease-deleted", previous="db-0")], NOW) == "1 earlier"
