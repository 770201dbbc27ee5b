"""What a write changed is known only if nothing was stored in between."""

from msgspec import Raw

from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.inputs.items import Act, InputKind, Observation, Place
from webhook.kubernetes.objects import Lease, ObjectMeta


def write(uid: str, act: Act = Act.UPDATED) -> Observation:
    lease = Lease(metadata=ObjectMeta(managed_fields=Raw(b"[]")))
    return Observation(
        place=Place("in"), input_kind=InputKind.WATCH, act=act, kind="Lease", namespace="shop", name="db",
        object=lease, uid=uid,
    )  # fmt: skip


def test_an_update_of_another_object_of_that_name_does_not_say_what_it_changed() -> None:
    writes = Writes()
    assert writes.make_request(write("a", Act.STORED)) is None
    assert writes.make_request(write("a")) is not None
    assert writes.make_request(write("b")) is None
    assert writes.unknown == 1
