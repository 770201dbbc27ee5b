"""The recipes of docs/outside.md that need no server; PostgreSQL and Redis are `make outside`."""

import copy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "outside"
OLD, NEW = f"{247:018}", f"{251:018}"
LEASE: dict[str, Any] = {
    "metadata": {
        "resourceVersion": "300",
        "annotations": {"lease-webhook/writer-5f3a9c1e": "1-2 system:a", "lease-webhook/term-5f3a9c1e": "247"},
    },
    "spec": {"holderIdentity": "x"},
}


def example(name: str) -> dict[str, Any]:
    """Return what a file defines."""
    namespace: dict[str, Any] = {}
    exec((EXAMPLES / name).read_text(encoding="utf-8"), namespace)
    return namespace


def changed(**annotations: str) -> dict[str, Any]:
    """The lease with other stamps."""
    lease = copy.deepcopy(LEASE)
    lease["metadata"]["annotations"] |= {f"lease-webhook/{key}-5f3a9c1e": text for key, text in annotations.items()}
    return lease


def test_the_term_of_the_writer() -> None:
    assert example("term.py")["term"](LEASE, "5f3a9c1e", "1-2") == OLD


def test_a_lease_that_was_not_renewed_yet() -> None:
    assert example("term.py")["term"](changed(term=""), "5f3a9c1e", "1-2") == f"{299:018}"


@pytest.mark.parametrize(
    "lease",
    [
        pytest.param(changed(writer="3-4 system:a"), id="another pod"),
        pytest.param(changed(writer=""), id="no stamp"),
        pytest.param({**LEASE, "spec": {}}, id="released"),
    ],
)
def test_the_term_of_another_one_is_not_read(lease: dict[str, Any]) -> None:
    reader = example("term.py")
    with pytest.raises(reader["NotLeadingError"]):
        reader["term"](lease, "5f3a9c1e", "1-2")


def test_the_revision_at_which_this_process_held_the_lease() -> None:
    assert example("revision.py")["revision"](LEASE, "x") == f"{300:018}"


@pytest.mark.parametrize(
    ("lease", "identity"),
    [
        pytest.param({**LEASE, "spec": {"holderIdentity": "y"}}, "x", id="another process holds it"),
        pytest.param({**LEASE, "spec": {"holderIdentity": ""}}, "x", id="it was released"),
        pytest.param({**LEASE, "spec": {"holderIdentity": ""}}, "", id="released, and no identity of its own"),
        pytest.param({**LEASE, "spec": {}}, "x", id="no one holds it"),
        pytest.param({**LEASE, "metadata": {"resourceVersion": "9" * 19}}, "x", id="a version of too many digits"),
        pytest.param({**LEASE, "metadata": {"resourceVersion": "v7"}}, "x", id="a version that is not a number"),
    ],
)
def test_no_revision_is_read_from_another_state(lease: dict[str, Any], identity: str) -> None:
    reader = example("revision.py")
    with pytest.raises(reader["NotLeadingError"]):
        reader["revision"](lease, identity)


def elected(lease: dict[str, Any] | None, identity: str, version: int) -> dict[str, Any]:
    """The lease as client-go writes it when it leads: it counts a transition of what it found, or creates with 0."""
    transitions = 0 if lease is None else lease["spec"]["leaseTransitions"] + 1
    spec = {"holderIdentity": identity, "leaseTransitions": transitions}
    return {"metadata": {"resourceVersion": str(version)}, "spec": spec}


def test_lease_transitions_restart_with_the_lease_and_revisions_do_not() -> None:
    reader = example("revision.py")["revision"]
    first = elected(None, "a", 300)
    second = elected(first, "b", 310)
    after_deletion = elected(None, "c", 320)
    transitions = [lease["spec"]["leaseTransitions"] for lease in (first, second, after_deletion)]
    revisions = [reader(lease, lease["spec"]["holderIdentity"]) for lease in (first, second, after_deletion)]
    assert transitions != sorted(transitions)
    assert revisions == sorted(set(revisions))


class Store:
    """One object with an ETag; `rival` comes first once."""

    def __init__(self) -> None:
        self.stored: tuple[int, str] | None = None
        self.rival = ""

    def read(self) -> tuple[int, str] | None:
        seen = self.stored
        if self.rival:
            self.stored, self.rival = ((self.stored or (0, ""))[0] + 1, self.rival), ""
        return seen

    def write(self, _: bytes, term: str, etag: int | None) -> bool:
        if etag != (self.stored and self.stored[0]):
            return False
        self.stored = ((etag or 0) + 1, term)
        return True


def test_an_object_is_written_by_the_newest_term() -> None:
    store, recipe = Store(), example("object_store.py")
    for term in (OLD, OLD, NEW):
        recipe["put"](store.read, store.write, b"", term)
    with pytest.raises(recipe["EndedTermError"]):
        recipe["put"](store.read, store.write, b"", OLD)
    assert store.stored == (3, NEW)


def test_a_rival_between_reading_and_writing() -> None:
    store, recipe = Store(), example("object_store.py")
    store.rival = NEW
    with pytest.raises(recipe["EndedTermError"]):
        recipe["put"](store.read, store.write, b"", OLD)
    store.rival = OLD
    recipe["put"](store.read, store.write, b"", NEW)
    assert store.stored == (3, NEW)


@pytest.mark.parametrize(
    ("terms", "statuses"),
    [
        pytest.param([OLD, OLD, NEW, OLD, NEW], ["200", "200", "200", "412", "200"], id="an older one"),
        pytest.param(["", "9", "x" * 18], ["412", "412", "412"], id="no term"),
    ],
)
def test_a_service_that_only_the_newest_term_may_call(terms: list[str], statuses: list[str]) -> None:
    def service(_: object, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"done"]

    app = example("http_service.py")["NewestTermOnly"](service)
    seen: list[str] = []
    for term in terms:
        app({"HTTP_LEASE_TERM": term}, lambda status, _: seen.append(status[:3]))
    assert seen == statuses
