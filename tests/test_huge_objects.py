"""Objects as large and as strange as a client can store them: the answer stays small, plain and complete.

What one rule finds is bounded, so that half a million wrong items cost no more than fifty.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.acceptance import accept
from tests.factories import (
    NOW,
    UID,
    Document,
    Tweak,
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.admission.policy.file import load
from webhook.admission.rules.answer_limits import MAX_FINDINGS
from webhook.admission.rules.finding import take_first_findings
from webhook.kubernetes.field import FieldError, invalid
from webhook.server.reviewer import respond

MANY: Final = 2000
LONG: Final = 30_000
HIDDEN: Final = "\U000e0001\x1b\u202e\u115f"
ALPHA: Final = make_candidate(put("apiVersion", "coordination.k8s.io/v1alpha1"), drop("spec.strategy"))
DELETED: Final = make_lease(put("metadata.deletionTimestamp", "2025-11-20T12:00:00Z"))


def lease(path: str, value: Any, old: Document | None = None) -> Document:
    return make_review(new=changed(old or make_lease(), put(path, value)), old=old)


CASES: Final = {
    "labels": lease("metadata.labels", {f"-{'<' * 200}{number}": "-" for number in range(MANY)}),
    "labels that draw nothing": lease("metadata.labels", {HIDDEN * 50 + str(number): "" for number in range(MANY)}),
    "annotations": lease("metadata.annotations", {f"a/b/c{number}": "" for number in range(MANY)}),
    "finalizers": lease("metadata.finalizers", [HIDDEN * 50] * MANY),
    "finalizers of an object that goes away": lease(
        "metadata.finalizers", [f"a/{HIDDEN * 50}{number}" for number in range(MANY)], DELETED
    ),
    "owners": lease("metadata.ownerReferences", [None] * MANY),
    "owners that all control": lease(
        "metadata.ownerReferences",
        [{"apiVersion": "v1", "kind": "\x1b[2J", "name": HIDDEN * LONG, "uid": "u", "controller": True}] * 60,
    ),
    "a name": lease("metadata.name", HIDDEN * LONG),
    "a generated name": make_review(
        new=make_lease(drop("metadata.name"), put("metadata.generateName", HIDDEN * LONG)),
    ),
    "a namespace": lease("metadata.namespace", HIDDEN * LONG),
    "a holder": lease("spec.holderIdentity", HIDDEN * LONG, make_lease()),
    "a time": lease("spec.renewTime", HIDDEN * LONG),
    "a time with a tail": lease("spec.renewTime", "2025-11-20T12:00:00.000000Z" + "\u00e9" * LONG, make_lease()),
    "a deletionTimestamp": lease("metadata.deletionTimestamp", HIDDEN * LONG, make_lease()),
    "times in managedFields": lease(
        "metadata.managedFields", [{"time": "10000-01-01T00:00:00Z", "manager": HIDDEN}] * MANY, make_lease()
    ),
    "broken managedFields": lease("metadata.managedFields", [1, None, {"time": 1}] * MANY, make_lease()),
    "a strategy": make_review(new=make_candidate(put("spec.strategy", f"{'a.' * LONG}/{HIDDEN}"))),
    "preferred strategies": make_review(new=changed(ALPHA, put("spec.preferredStrategies", [HIDDEN * 50] * MANY))),
    "a leaseName": make_review(new=make_candidate(put("spec.leaseName", "a." * LONG))),
    "versions": make_review(
        new=make_candidate(
            put("spec.binaryVersion", f"1.36.0-{'a.' * LONG}a"), put("spec.emulationVersion", f"1.36.0-{'a.' * LONG}b")
        )
    ),
    "a pod's name": make_review(
        put("request.userInfo.extra[authentication.kubernetes.io/pod-name]", [HIDDEN * LONG]), new=make_lease()
    ),
    "options": make_review(put("request.options", {"fieldManager": HIDDEN * LONG, "dryRun": [HIDDEN] * MANY})),
}


@pytest.mark.uncounted
@pytest.mark.parametrize("preset", ["observe", "standard", "strict"])
@pytest.mark.parametrize("review", [pytest.param(review, id=name) for name, review in CASES.items()])
def test_the_answer_stays_small_and_plain(review: Document, preset: str) -> None:
    reply = respond(to_bytes(review), load(preset), NOW)
    assert reply.status == 200
    accept(reply.body, UID)


def test_a_rule_is_asked_for_so_many_findings_and_no_more() -> None:
    asked = 0

    def errors() -> Iterator[FieldError]:
        nonlocal asked
        while True:
            asked += 1
            yield invalid("metadata.labels", "-", "must be better")

    assert len(take_first_findings(errors())) == MAX_FINDINGS
    assert asked == MAX_FINDINGS


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("metadata.labels", {f"-{number}": "-" for number in range(MANY)}), id="labels"),
        pytest.param(put("metadata.finalizers", [f"-{number}" for number in range(MANY)]), id="finalizers"),
        pytest.param(put("metadata.annotations", {f"a/b/{number}": "" for number in range(MANY)}), id="annotations"),
    ],
)
def test_a_last_warning_stands_for_those_that_do_not_fit(tweak: Tweak) -> None:
    reply = respond(to_bytes(make_review(new=make_lease(tweak))), load("observe"), NOW)
    warnings = accept(reply.body, UID).warnings
    assert warnings[-1] == "lease webhook: more findings than fit into warnings; fix these first"
    assert sum(map(len, warnings)) <= 4096
