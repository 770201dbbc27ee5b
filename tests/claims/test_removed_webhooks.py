"""Webhooks that could not be called until their configuration was deleted: it may be installed again."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import ADMISSION, log_write
from tests.factories import Tweak, drop, put
from tests.history.fake_server import START, FakeServer, together
from tests.history.observing import advise, follow_log
from tests.inputs.test_absences import missing_pod_event
from webhook.kubernetes.times import format_micro_time

UNREACHED = 'Internal error occurred: failed calling webhook "guard.vendor.example": no endpoints available'
CONFIGURATION = "validatingwebhookconfigurations"
GUARD = put("objectRef", {"resource": CONFIGURATION, "apiGroup": ADMISSION, "name": "guard"})
DELETED = put("verb", "delete"), put("level", "Metadata"), drop("responseObject")
CREATED = put("verb", "create"), put("responseStatus.code", 201)


def log_guard(server: FakeServer, *tweaks: Tweak) -> None:
    log_write(server, CONFIGURATION, ADMISSION, GUARD, *tweaks)


def find_none(server: FakeServer, *tweaks: Tweak) -> None:
    """Have the API server answer a person that the configuration is not there."""
    now = format_micro_time(server.now)
    at = put("requestReceivedTimestamp", now), put("stageTimestamp", now)
    server.log.append(missing_pod_event(GUARD, *at, *tweaks))


def play(*, is_created: bool = True, is_asked: bool = True, is_back: bool = False, other: str = "") -> FakeServer:
    """Have every renewal fail from the creation of a configuration until its deletion; db-1 takes the lease then."""
    server, (db, *others) = shop()
    follower = server.elector("db-1", "shop/db")
    together(40, db, *others)
    if is_created:
        log_guard(server, *CREATED, put("user.username", "ci@example.org"))
    for _ in range(10):
        server.wait(2)
        db.fail(500, UNREACHED)
        for one in others:
            one.renew()
    server.wait(0.2)
    log_guard(server, *DELETED)
    if other:
        log_write(server, other, ADMISSION, put("objectRef.name", "other"))
    server.wait(0.2)
    if is_asked:
        find_none(server)
    follower.take()
    together(10, follower, *others)
    if is_back:
        log_guard(server, *CREATED)
    return server


def read(server: FakeServer) -> str:
    return advise(account(follow_log(server), server.now))


def test_who_installs_it_again_is_to_exempt_leases() -> None:
    assert read(play()) == (
        "Before ci@example.org, who had created it, installs it again, let ValidatingWebhookConfiguration guard leave "
        "out leases (coordination.k8s.io): webhook guard.vendor.example failed for writes of the lease until "
        "11:07:40Z, and they have succeeded since that was deleted."
    )


def test_who_had_created_it_before_the_log_is_not_known() -> None:
    assert read(play(is_created=False)).startswith(
        "Before it is installed again, let ValidatingWebhookConfiguration guard leave out leases"
    )


@pytest.mark.parametrize(
    "server",
    [play(is_asked=False), play(is_back=True), play(other="mutatingwebhookconfigurations")],
    ids=["the deletion may have been a dry run", "it is back", "another one was written at the same time"],
)
def test_what_ended_the_failures_may_not_be_known(server: FakeServer) -> None:
    assert "See why it failed: " in read(server)


@pytest.mark.parametrize(
    ("server", "is_sure"),
    [(play(), True), (play(is_asked=False), False)],
    ids=["it was not found then", "no one asked for it"],
)
def test_the_deletion_of_a_configuration_that_was_gone_then_was_no_dry_run(
    server: FakeServer, *, is_sure: bool
) -> None:
    said = text(account(follow_log(server), server.now))
    assert "ValidatingWebhookConfiguration guard was deleted by alice@example.org" in said
    assert ("unless that was a dry run" not in said) is is_sure


def test_that_it_was_not_there_before_says_nothing_of_a_deletion() -> None:
    server = play(is_asked=False)
    find_none(server, put("requestReceivedTimestamp", format_micro_time(START)))
    assert "unless that was a dry run" in text(account(follow_log(server), server.now))
