"""The identity leases of API servers."""

import pytest

from tests.factories import Document, Tweak, drop, put
from tests.rules import wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    by_user,
    in_namespace,
    said,
    update,
)

IDENTITY = put("metadata.labels", {"apiserver.kubernetes.io/identity": "kube-apiserver"})

SERVER = in_namespace("kube-system", "apiserver-7x")

EDIT = put("spec.leaseTransitions", 6)


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(EDIT, old=[IDENTITY], review=[SERVER]), True, id="by another writer"),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[SERVER, by_user("system:apiserver")]), False, id="by the API server"
        ),
        pytest.param(update(EDIT, review=[SERVER]), False, id="without the label"),
        pytest.param(update(EDIT, IDENTITY, review=[SERVER]), False, id="with the label in this write only"),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[in_namespace("kube-system", "other")]), False, id="under another name"
        ),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[in_namespace("kube-system", "apiserverx")]),
            False,
            id="under a name that begins as those of API servers do",
        ),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[in_namespace("shop", "apiserver-7x")]),
            False,
            id="in another namespace",
        ),
        pytest.param(update(put("metadata.labels.a", "1"), old=[IDENTITY], review=[SERVER]), False, id="a label"),
        pytest.param(
            update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), old=[IDENTITY], review=[SERVER]),
            False,
            id="a renewal",
        ),
    ],
)
def test_apiserver_lease_writer(review: Document, speaks: bool) -> None:
    assert said("apiserver-lease-writer", review) == ({(FORBIDDEN, "spec", DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("tweaks", "user", "speaks"),
    [
        pytest.param([drop("metadata.labels")], by_user("dev"), True, id="all labels"),
        pytest.param([put("metadata.labels", {"a": "b"})], by_user("dev"), True, id="the label, and another added"),
        pytest.param([drop("metadata.labels"), EDIT], by_user("dev"), True, id="beside an edit"),
        pytest.param(
            [drop("metadata.labels"), put("spec.renewTime", "2025-11-20T12:00:02.000000Z")],
            by_user("dev"),
            True,
            id="in a renewal",
        ),
        pytest.param([drop("metadata.labels")], by_user("system:apiserver"), False, id="by the API server"),
    ],
)
def test_the_label_of_an_apiserver_lease_is_not_removed(tweaks: list[Tweak], user: Tweak, speaks: bool) -> None:
    review = update(*tweaks, old=[IDENTITY], review=[SERVER, user])
    expected = {(FORBIDDEN, "metadata.labels", DENY)} if speaks else set()
    assert said("apiserver-lease-writer", review) == expected


WORDING = [
    pytest.param(
        "apiserver-lease-writer",
        update(wording.EDIT, old=[wording.IDENTITY], review=[wording.SERVER]),
        "spec: Forbidden: an API server's identity lease may be written by system:apiserver only",
        '"system:serviceaccount:shop:checkout" wrote the identity lease of an API server',
        id="an API server's lease",
    ),
    pytest.param(
        "apiserver-lease-writer",
        update(drop("metadata.labels"), old=[wording.IDENTITY], review=[wording.SERVER]),
        (
            "metadata.labels: Forbidden: apiserver.kubernetes.io/identity may be removed from an API "
            "server's identity lease by system:apiserver only"
        ),
        '"system:serviceaccount:shop:checkout" removed the identity label of an API server\'s lease',
        id="the label of an API server's lease",
    ),
]

WRITES_IT_SPEAKS_OF = {
    "apiserver-lease-writer": [
        update(wording.RENEWAL, drop("metadata.labels"), old=[wording.IDENTITY], review=[wording.SERVER])
    ]
}
