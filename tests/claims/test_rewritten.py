"""Writes that were stored differently than their requests asked: a mutating webhook or policy changes the lease."""

import json
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import ADMISSION, log_write
from tests.factories import put
from tests.history.fake_server import Elector, FakeServer, hide_responses, together
from tests.history.observing import LEASE, advise, follow_both, follow_log
from tests.inputs.reading import read
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.audit_log.rewritten import RewrittenField, RewrittenFields
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer
from webhook.analysis.inputs.rewriting import Rewriting

PATCH = "patch.webhook.admission.k8s.io/round_0_index_0"
MUTATORS = "kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies"


def ask(server: FakeServer, *patched: str, annotation: str = "", **asked: Any) -> None:
    """Have the last write ask for other values than were stored, which a webhook patched."""
    event = server.log[-1]
    stored = event["responseObject"]
    spec = {**stored["spec"], **asked}
    event["requestObject"] = {**stored, "spec": {key: value for key, value in spec.items() if value is not None}}
    webhook = {"configuration": "defaults", "webhook": "defaults.vendor.example", "patchType": "JSONPatch"}
    patch = [{"op": "replace", "path": path} for path in patched]
    if patched or annotation:
        event["annotations"] = {PATCH: annotation or json.dumps({**webhook, "patch": patch}), "other": "{}"}


def led(*patched: str, annotation: str = "", **asked: Any) -> FakeServer:
    """A server on which the last four renewals of the holder asked for something else."""
    server, (db, *others) = shop()
    together(30, db, *others)
    for _ in range(4):
        together(2, *others, db)
        ask(server, *patched, annotation=annotation, **asked)
    return server


def claim(server: FakeServer) -> dict[str, Any]:
    claims = make_account_json(account(follow_log(server), server.now))["claims"]
    (claim,) = [one for one in claims if one["claim"] == "stored-other-than-asked"]
    assert isinstance(claim, dict)
    return claim


def find_advice(server: FakeServer) -> str:
    return advise(account(follow_log(server), server.now))


def test_another_holder_than_asked_is_an_error_that_goes_on() -> None:
    server = led(holderIdentity="db-0_original")
    stored_other = claim(server)
    assert (stored_other["severity"], stored_other["ongoing"], stored_other["count"]) == ("error", True, 4)
    assert (stored_other["field"], stored_other["asked"], stored_other["stored"]) == (
        "holderIdentity",
        "db-0_original",
        "db-0_1",
    )
    assert "does not find itself as the holder" in stored_other["text"]
    headline = make_headline(account(follow_log(server), server.now))
    assert headline == "db-0_1 holds it as stored, but its writer asked for db-0_original, renewed 0 s ago"
    assert find_advice(server).endswith(MUTATORS)


def test_what_another_one_asks_for_is_not_what_the_holder_asked_for() -> None:
    server = led(holderIdentity="db-0_original")
    server.write("shop/db", dict(server.leases["shop/db"]["spec"]), "kubectl-patch", "alice", "")
    ask(server, holderIdentity="db-9")
    (tenure,) = follow_log(server).leases[LEASE].tenures
    assert tenure.asked_holder == "db-0_original"


def test_who_writes_the_stored_name_of_an_unknown_process_asked_for_nothing_else() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.identity = "cluster-leader"
    db.take()
    ask(server, holderIdentity="db-0")
    server.wait(2)
    server.write("shop/db", dict(server.leases["shop/db"]["spec"]), "kubectl-patch", "alice", "")
    ask(server)
    (tenure,) = follow_log(server).leases[LEASE].tenures
    assert tenure.asked_holder == "db-0"


def test_it_is_not_known_whether_it_goes_on_behind_a_hole_of_the_log() -> None:
    server = led(holderIdentity="db-0_original")
    server.wait(60)
    together(4, server.elector("cart-0", "shop/cart"))
    assert "ongoing" not in claim(server)


def test_a_webhook_that_the_log_names_is_the_one_to_look_at() -> None:
    server = led("/spec/leaseDurationSeconds", leaseDurationSeconds=300)
    stored_other = claim(server)
    assert stored_other["severity"] == "warning"
    assert stored_other["text"].endswith("the log says that webhook defaults.vendor.example changed it")
    assert find_advice(server).endswith("kubectl get mutatingwebhookconfigurations defaults -o yaml")


def test_a_webhook_that_changed_another_field_did_not_change_this_one() -> None:
    server = led("/metadata/labels", "/spec/leaseTransitions", leaseDurationSeconds=300)
    assert "defaults.vendor.example" not in claim(server)["text"]
    assert find_advice(server).endswith(MUTATORS)


def test_a_webhook_that_set_the_whole_spec_changed_its_fields() -> None:
    assert "defaults.vendor.example" in claim(led("/spec", leaseDurationSeconds=300))["text"]


def test_a_webhook_that_is_named_for_some_writes_did_not_change_the_others() -> None:
    server = led("/spec/leaseDurationSeconds", leaseDurationSeconds=300)
    del server.log[-1]["annotations"]
    assert claim(server)["text"].endswith("and does not say what else did")
    assert find_advice(server).endswith(MUTATORS)


def test_an_annotation_that_cannot_be_read_names_no_webhook() -> None:
    server = led(annotation='{"patch": 1}', leaseDurationSeconds=300)
    assert "the log says" not in claim(server)["text"]


def led_by_several(number: int) -> FakeServer:
    """A server on which each renewal was changed by another one of so many webhooks, each of a configuration."""
    server, (db, *others) = shop()
    together(30, db, *others)
    for which in range(number):
        db.renew()
        ask(server, "/spec", leaseDurationSeconds=300)
        named = server.log[-1]["annotations"][PATCH].replace("defaults", f"defaults-{which}")
        server.log[-1]["annotations"][PATCH] = named
    return server


def _name_several(*numbers: int) -> str:
    return ", ".join(f"defaults-{which}.vendor.example" for which in numbers)


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (3, f"{_name_several(0, 1)} and {_name_several(2)}"),
        (4, f"{_name_several(0, 1, 2)} and {_name_several(3)}"),
        (6, f"{_name_several(2, 3, 4, 5)} and 2 others"),
    ],
)
def test_all_webhooks_that_changed_it_are_to_leave_it_alone(number: int, names: str) -> None:
    server = led_by_several(number)
    assert f"; the log says that webhooks {names} changed it" in claim(server)["text"]
    configurations = " ".join(f"defaults-{which}" for which in range(number))
    assert find_advice(server) == (
        f"Exclude leases from webhooks {names}, or have them leave leaseDurationSeconds alone: "
        f"kubectl get mutatingwebhookconfigurations {configurations} -o yaml"
    )


def test_no_more_webhooks_are_kept_than_are_shown() -> None:
    server = led_by_several(20)
    (field,) = follow_log(server).leases["shop", "db"].requests.rewritten.found.values()
    assert len(field.webhooks) == 16


@pytest.mark.parametrize(
    ("asked", "effect"),
    [
        ({"renewTime": "2026-11-18T00:00:00.000000Z"}, "compare it with their own clock"),
        ({"renewTime": None}, "asked for none, and"),
        ({"leaseTransitions": 7}, "counts changes of the holder"),
    ],
)
def test_each_field_says_what_follows(asked: dict[str, Any], effect: str) -> None:
    assert effect in claim(led(**asked))["text"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"holderIdentity": "db-0_1", "preferredHolder": "db-1"},
        {"acquireTime": "2026-11-18T11:06:39.000000Z"},
        {"acquireTime": "yesterday"},
    ],
)
def test_what_an_api_server_may_change_itself_is_no_claim(asked: dict[str, Any]) -> None:
    server = led(**asked)
    assert "stored-other-than-asked" not in text(account(follow_log(server), server.now))


def test_an_object_that_cannot_be_read_was_not_asked_for() -> None:
    server = led(leaseDurationSeconds="many")
    assert "stored-other-than-asked" not in text(account(follow_log(server), server.now))


def test_a_patch_does_not_show_all_that_it_asks() -> None:
    server = led(leaseDurationSeconds=300)
    for event in server.log:
        event["verb"] = "patch"
    assert "stored-other-than-asked" not in text(account(follow_log(server), server.now))


def test_it_is_over_once_a_write_is_stored_as_asked() -> None:
    server = led(leaseDurationSeconds=300)
    elector = server.elector("db-0", "shop/db")
    server.wait(2)
    elector.renew()
    assert claim(server)["ongoing"] is False


def test_long_after_the_last_write_it_is_not_known_whether_it_goes_on() -> None:
    server = led(leaseDurationSeconds=300)
    together(30, *[server.elector(f"{lease}-0", f"shop/{lease}") for lease in ("mail", "cart")])
    assert "ongoing" not in claim(server)


def test_a_single_write_is_one() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    server.wait(2)
    db.renew()
    ask(server, leaseDurationSeconds=300)
    assert "at least 1 write was stored with another leaseDurationSeconds than requested, at " in claim(server)["text"]


def test_a_holder_that_asked_for_another_one_may_not_have_found_itself() -> None:
    server = led(holderIdentity="db-0_original")
    others = [server.elector(f"{lease}-0", f"shop/{lease}") for lease in ("mail", "cart")]
    together(20, *others)
    server.elector("db-1", "shop/db").lead(10)
    (lost,) = [
        one
        for one in make_account_json(account(follow_log(server), server.now))["claims"]
        if one["claim"] == "leader-lost"
    ]
    assert lost["causes"][0] == "rewritten"
    assert (
        "It may not have found itself named as the holder, or it may have stopped: it asked for db-0_original"
        in lost["text"]
    )


def test_a_clock_is_not_off_whose_time_was_changed() -> None:
    server, (db, *others) = shop()
    db.ahead = -300
    together(30, db, *others)
    assert "holder-clock" in text(account(follow_log(server), server.now))
    for event in server.log:
        if event["objectRef"]["name"] == "db":
            stored = event["responseObject"]
            spec = {**stored["spec"], "renewTime": event["stageTimestamp"]}
            event["requestObject"] = {**stored, "spec": spec}
    output = text(account(follow_log(server), server.now))
    assert "holder-clock" not in output
    assert "another renewTime than requested" in output


def test_what_was_sent_is_not_what_was_stored_if_a_webhook_changed_it() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").take()
    (event,) = server.log
    event["requestObject"] = event.pop("responseObject")
    assert make_headline(account(follow_log(server), server.now)).startswith("db-0_1 holds it")
    event["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}
    output = make_headline(account(follow_log(server), server.now))
    assert output == "db-0 wrote it last, 0 s ago; the log does not show what was written"


@pytest.mark.parametrize("is_created", [True, False], ids=["from its creation on", "later"])
def test_what_was_sent_is_not_a_second_write_beside_what_was_stored(is_created: bool) -> None:
    server = led(holderIdentity="db-0_original")
    if is_created:
        for event in server.log:
            if event["objectRef"]["name"] == "db":
                stored = event["responseObject"]
                event["requestObject"] = {**stored, "spec": {**stored["spec"], "holderIdentity": "db-0_original"}}
    answer = account(follow_both(hide_responses(server)), server.now)
    assert {one.check for one in answer.findings} == {"stored-other-than-asked", "timing-tight"}
    assert [one.holder for one in answer.history.tenures] == ["db-0_1"]
    assert make_headline(answer) == "db-0_1 holds it as stored, but its writer asked for db-0_original, renewed 0 s ago"


def test_what_was_sent_is_not_what_was_stored_where_the_watch_lacks_a_write() -> None:
    server = hide_responses(led(holderIdentity="db-0_original"))
    stored = [one for one in server.events if one[2]["metadata"]["name"] == "db"]
    server.events.remove(stored[-2])
    answer = account(follow_both(server), server.now)
    (rewritten,) = [one for one in answer.findings if one.check == "stored-other-than-asked"]
    assert "2 writes" in rewritten.message
    assert [one.holder for one in answer.history.tenures] == ["db-0_1"]


def test_a_write_that_left_the_lease_as_it_was_is_not_counted() -> None:
    server = led(renewTime="2026-11-18T10:00:00.000000Z")
    seen = [one for one in read("log", [server.audit_log()]) if isinstance(one, Observation) and one.rewritings][-1]
    fields = RewrittenFields()
    fields.take(seen)
    fields.take(seen)
    assert fields.found["renewTime"].count == 1


def renew_rewritten(server: FakeServer, db: Elector, *others: Elector) -> None:
    """Have a holder ask for 15 s in three renewals, of which 60 s are stored."""
    for _ in range(3):
        together(2, *others)
        db.renew(leaseDurationSeconds=60)
        ask(server, leaseDurationSeconds=15)


def test_an_edit_that_was_not_asked_for_is_not_by_who_asked() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    renew_rewritten(server, db, *others)
    output = text(account(follow_log(server), server.now))
    assert "leaseDurationSeconds 15 -> 60, where shop/db from pod db-0 asked for 15\n" in output


def test_what_may_have_changed_writes_is_listed_before_the_first_that_was_changed() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    for name, verb in (("calm", "create"), ("old", "delete")):
        tweaks = put("verb", verb), put("objectRef.name", name), put("objectRef.namespace", "")
        log_write(server, "mutatingadmissionpolicies", ADMISSION, *tweaks)
    renew_rewritten(server, db, *others)
    output = text(account(follow_log(server), server.now))
    assert "MutatingAdmissionPolicy calm was created by alice@example.org" in output
    assert "MutatingAdmissionPolicy old" not in output


def test_what_changes_writes_now_is_advised_on_before_a_loss_that_is_over() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    together(20, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    for _ in range(4):
        together(2, *others, follower)
        ask(server, leaseDurationSeconds=300)
    wanted = "Look for a mutating webhook or policy that sets leaseDurationSeconds of leases"
    assert find_advice(server).startswith(wanted)


WEBHOOK = {"configuration": "finops", "webhook": "labels.finops.example"}
MUTATED = '{"configuration":"finops","webhook":"labels.finops.example","mutated":true}'
CALL = "webhook.admission.k8s.io/round_0_index_0"


def put_back(server: FakeServer, elector: Elector, patch: list[dict[str, Any]]) -> None:
    """Have an elector write itself in, and a webhook put back what is stored."""
    stored = server.leases[elector.lease]
    server.log_request(elector.lease, "update", elector.user, elector.pod, stored)
    event = server.log[-1]
    spec = {**stored["spec"], "holderIdentity": elector.identity, "renewTime": elector._time()}
    event["requestObject"] = {**stored, "spec": spec}
    event["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    event["annotations"] = {
        f"mutation.{CALL}": MUTATED,
        f"patch.{CALL}": json.dumps({**WEBHOOK, "patch": patch, "patchType": "JSONPatch"}),
    }


def led_beside_a_webhook(*, changed: dict[str, Any] | None = None) -> FakeServer:
    """A server whose webhook puts back the cached spec for 60 s, while another pod takes the lease and keeps it."""
    server, (db, *others) = shop()
    together(30, db, *others)
    second = server.elector("db-1", "shop/db", user=db.user)
    patch = [{"op": "replace", "path": "/spec", "value": server.leases["shop/db"]["spec"], **(changed or {})}]
    for number in range(30):
        together(2, *others)
        put_back(server, db, patch)
        if number >= 8:
            put_back(server, second, patch)
    server.wait(2)
    second.take()
    for _ in range(3):
        together(2, *others)
        second.renew()
    return hide_responses(server)


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "both"])
def test_writes_that_a_webhook_puts_back_renew_nothing_and_two_may_lead(follow: Any) -> None:
    server = led_beside_a_webhook()
    answer = account(follow(server), server.now)
    output = text(answer)
    assert [one.holder for one in answer.history.tenures] == ["db-0_1", "db-1_1"]
    assert "it asked for db-1_1, and db-0_1 was stored" in output
    assert "wrote it as db-0_1 in that time; writes of both were accepted, so both may have led" in output
    assert "webhook labels.finops.example changed it" in output
    assert "The same one was stored each time: they renewed nothing" in output
    assert "renewals of db-0_1 were accepted, and stored with the renewTime that it had" in output
    assert "accepted from 11:07:28Z on, and stored with another one: it may have led since" in output
    assert "left the holder and its renewals as they were" not in output


@pytest.mark.parametrize(
    "changed",
    [
        {"op": "move"},
        {"path": "", "value": {}},
        {"value": 1},
        {"path": "/spec/a/b"},
        {"path": "/metadata/x"},
        {"value": {"leaseDurationSeconds": "x"}},
    ],
)
def test_a_patch_of_a_webhook_that_is_not_known_does_not_show_what_was_stored(changed: dict[str, Any]) -> None:
    server = led_beside_a_webhook(changed=changed)
    assert "stored-other-than-asked" not in text(account(follow_log(server), server.now))


def test_a_webhook_that_adds_a_label_leaves_what_was_asked_for() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    for event in hide_responses(server).log:
        event["annotations"] = {
            f"mutation.{CALL}": MUTATED,
            f"patch.{CALL}": json.dumps({"patch": [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]}),
        }
    output = text(account(follow_log(server), server.now))
    assert output.startswith("db-0_1 holds it")
    assert "stored-other-than-asked" not in output


def test_of_many_processes_whose_writes_were_changed_the_first_are_remembered() -> None:
    rewriting = Rewriting("holderIdentity", "db-1", "db-0")
    field = RewrittenField("holderIdentity", 0, 0)
    for number in range(MAX_LISTED + 1):
        field.note(number, Writer(f"user-{number}"), rewriting)
    assert (field.count, len(field.spans)) == (MAX_LISTED + 1, MAX_LISTED)
