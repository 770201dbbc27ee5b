"""What the rules say, word for word: the text of a denial, and that of a warning on an admitted write.

The wording of the policy rules is pinned here and nowhere else; other tests compare type, field path and rule id.
"""

import pytest

from tests.factories import (
    NOW,
    Document,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
)
from tests.rules.findings import (
    RIVAL,
    SECOND,
    by_node,
    by_service_account,
    by_user,
    candidate_updated,
    created,
    deleted,
    findings,
    in_namespace,
    take,
    update,
    written,
)
from webhook.rules.holders import Binding
from webhook.rules.registry import RULES
from webhook.rules.rule import Statement
from webhook.rules.stamps import Stamps

POD = "checkout-6d5f9c-x2x8p"
INTRUDER = by_service_account("guest", "intruder", "intruder-0")
PODLESS = by_service_account("shop", "checkout")
OWN = by_service_account("shop", "checkout", POD)
BOUND = Binding(service_accounts=frozenset({("shop", "checkout")}), holders=("${pod}_*", "manual-?"))
STOLEN = written(take(RIVAL), at="2025-11-20T12:00:04Z")
STAMPLESS = drop("metadata.managedFields[0].time")
RENEWAL = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")
EDIT = put("spec.leaseTransitions", 6)
IDENTITY = put("metadata.labels", {"apiserver.kubernetes.io/identity": "kube-apiserver"})
SERVER = in_namespace("kube-system", "apiserver-7x")
NODE = in_namespace("kube-node-lease", "n1")
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout", "uid": "1"}
YEAR_10000 = "10000-01-01T00:59:59.999999Z"


_ENTRY = {"manager": "lease-webhook-stamp", "operation": "Update", "time": "2000-01-01T00:00:00Z"}
STAMPS = Stamps("1a2b3c4d")
STAMPED = (
    put("metadata.managedFields", [_ENTRY]),
    put("metadata.annotations[lease-webhook/writer-1a2b3c4d]", "uid system:serviceaccount:shop:checkout"),
    put("metadata.annotations[lease-webhook/written-1a2b3c4d]", "2025-11-20T12:00:00Z"),
)
"""By a pod; the writers of these reviews have no uid, or another."""


TEXTS = [
    pytest.param(
        "foreign-writer",
        update(RENEWAL, old=STAMPED),
        (
            'spec: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" and was last written by '
            '"uid system:serviceaccount:shop:checkout", which this writer is not; retry in 11 s, or ask the holder to '
            "release it"
        ),
        (
            'lease "shop/checkout" was written by another writer than that of "checkout-6d5f9c-x2x8p_1f0e" 11 s before '
            "expiry: there may be two leaders"
        ),
        id="a renewal by another writer",
    ),
    pytest.param(
        "foreign-writer",
        deleted(old=STAMPED),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" and was last written by '
            '"uid system:serviceaccount:shop:checkout", which this writer is not; retry in 11 s, or ask the holder to '
            "release it"
        ),
        (
            'lease "shop/checkout" was deleted, held by "checkout-6d5f9c-x2x8p_1f0e", 11 s before expiry: there may be '
            "two leaders"
        ),
        id="a deletion by another writer",
    ),
    pytest.param(
        "time-unreadable",
        update(put("spec.renewTime", YEAR_10000)),
        (
            'spec.renewTime: Invalid value: "10000-01-01T00:59:59.999999Z": must be a time of the years 0000 to 9999 '
            'in UTC with six fraction digits, such as "2026-01-31T12:00:00.000000Z"; JSON clients cannot decode any '
            "other"
        ),
        "spec.renewTime is not a time of the years 0000 to 9999: JSON clients cannot decode it",
        id="a time that is year 10000 in UTC",
    ),
    pytest.param(
        "time-unreadable",
        update(put("metadata.managedFields[0].time", "20000-01-01T00:00:00Z")),
        (
            'metadata.managedFields[0].time: Invalid value: "20000-01-01T00:00:00Z": must be a time of the years 0000 '
            'to 9999 in UTC, such as "2026-01-31T12:00:00Z"; JSON clients cannot decode any other'
        ),
        "metadata.managedFields[0].time is not a time of the years 0000 to 9999: JSON clients cannot decode it",
        id="the time of an entry",
    ),
    pytest.param(
        "renewal-stamp-tampered",
        update(put("metadata.managedFields", [])),
        (
            "metadata.managedFields: Forbidden: this write erases the time of the last renewal (12:00:00Z by manager "
            '"checkout"); remove metadata.managedFields from the file or patch and send it again'
        ),
        'this write erases the time of the last renewal (12:00:00Z by manager "checkout")',
        id="managedFields emptied",
    ),
    pytest.param(
        "lease-too-large",
        update(put("metadata.annotations", {"a": "b" * 300_000})),
        (
            "metadata: Forbidden: must not grow beyond 262144 bytes, from 693 to 300716: etcd refuses objects that are "
            "too large; write fewer or shorter labels, owners, finalizers and entries of managedFields"
        ),
        "the lease grew from 693 to 300716 bytes: etcd refuses objects that are too large",
        id="a lease that grows",
    ),
    pytest.param(
        "takeover-before-expiry",
        update(STOLEN),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s; retry in 11 s, or ask the "
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a steal",
    ),
    pytest.param(
        "takeover-before-expiry",
        update(take(RIVAL), old=[STAMPLESS]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, the holder's clock), duration 15 s; retry in 11 s, or ask the "
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry '
            "by its holder's clock: there may be two leaders"
        ),
        id="a steal without stamps",
    ),
    pytest.param(
        "takeover-by-node",
        update(STOLEN, review=[by_node("n1")]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            'last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s, and "system:node:n1" is a '
            "node; retry in 11 s, or ask the holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a node",
    ),
    pytest.param(
        "takeover-across-namespaces",
        update(STOLEN, review=[INTRUDER]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s, and "
            '"system:serviceaccount:guest:intruder" belongs to another namespace; retry in 11 s, or ask the '
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="another namespace",
    ),
    pytest.param(
        "lease-without-stamps",
        update(take(RIVAL), old=[STAMPLESS]),
        (
            "metadata.managedFields: Forbidden: the API server has no record of the last renewal of this "
            "lease, so its holder's own clock decides; `kubectl apply --server-side` of apiVersion, kind, "
            "name, namespace and a label brings a record back (it stamps now, so a takeover waits one duration)"
        ),
        "no API server record of the last renewal: the holder's own clock decided; repair: PAGE",
        id="a steal of a lease without stamps",
    ),
    pytest.param(
        "lease-without-stamps",
        update(take(RIVAL), old=[drop("metadata.managedFields"), put("spec.holderIdentity", "")]),
        (
            "metadata.managedFields: Forbidden: the API server keeps no record of this lease, so one write can take it "
            "from its new holder; `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label "
            "brings a record back (it stamps now, so a takeover waits one duration)"
        ),
        "the API server keeps no record of this lease: one write can take it; fix: PAGE",
        id="a claim of a lease without stamps",
    ),
    pytest.param(
        "lease-created-empty",
        make_review(new=make_lease(drop("metadata.managedFields"), put("spec", {}), put("metadata.labels", {}))),
        (
            "metadata.managedFields: Forbidden: the API server keeps no record of the renewals of a lease that is "
            "created empty, so one write could take it from a live holder; create it with a label"
        ),
        "a lease was created empty: no renewal of it will have an API server's stamp; fix: PAGE",
        id="a lease that is created empty",
    ),
    pytest.param(
        "renew-time-in-future",
        created(put("spec.renewTime", "2025-11-20T21:00:03.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T21:00:03.000000Z": must not be more than 60 s ahead '
            "of the API server (12:00:04Z), is 9 h 0 min ahead; whole hours: the client writes local time as "
            "UTC"
        ),
        "renewTime is 9 h 0 min ahead of the API server (12:00:04Z): the client writes local time as UTC",
        id="nine hours ahead",
    ),
    pytest.param(
        "renew-time-in-future",
        created(put("spec.renewTime", "2025-11-20T12:01:34.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T12:01:34.000000Z": must not be more than 60 s ahead '
            "of the API server (12:00:04Z), is 1 min 30 s ahead; write the current time, or set the client's "
            "clock"
        ),
        "renewTime is 1 min 30 s ahead of the API server (12:00:04Z): set the client's clock",
        id="90 seconds ahead",
    ),
    pytest.param(
        "renew-time-in-future",
        update(put("spec.renewTime", "2035-11-20T12:00:00.000000Z")),
        (
            'spec.renewTime: Invalid value: "2035-11-20T12:00:00.000000Z": must not be more than 86400 s '
            "ahead of the API server (12:00:04Z), is 3652 d 0 h ahead; write the current time, or set the "
            "client's clock"
        ),
        "renewTime is 3652 d 0 h ahead of the API server (12:00:04Z): set the client's clock",
        id="ten years ahead",
    ),
    pytest.param(
        "duration-too-long",
        created(put("spec.leaseDurationSeconds", 31536001)),
        (
            "spec.leaseDurationSeconds: Invalid value: 31536001: must not be greater than 31536000; a dead "
            "holder would keep the lease for as long"
        ),
        "leaseDurationSeconds is 31536001: a dead holder keeps the lease for 365 d 0 h",
        id="longer than a year",
    ),
    pytest.param(
        "duration-too-long",
        created(put("spec.leaseDurationSeconds", 86401)),
        (
            "spec.leaseDurationSeconds: Invalid value: 86401: must not be greater than 86400; a dead holder "
            "would keep the lease for as long"
        ),
        "leaseDurationSeconds is 86401: a dead holder keeps the lease for 1 d 0 h",
        id="longer than a day",
    ),
    pytest.param(
        "duration-shortened",
        update(drop("spec.leaseDurationSeconds")),
        (
            'spec.leaseDurationSeconds: Forbidden: may not be removed while "checkout-6d5f9c-x2x8p_1f0e" '
            "holds the lease (11 s left); renew or release instead"
        ),
        (
            'leaseDurationSeconds was removed while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration removed",
    ),
    pytest.param(
        "duration-shortened",
        update(drop("spec.renewTime")),
        (
            'spec.renewTime: Forbidden: may not be removed while "checkout-6d5f9c-x2x8p_1f0e" holds the '
            "lease (11 s left); renew or release instead"
        ),
        ('renewTime was removed while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: there may be two leaders'),
        id="renewTime removed",
    ),
    pytest.param(
        "duration-shortened",
        update(put("spec.leaseDurationSeconds", 1)),
        (
            "spec.leaseDurationSeconds: Forbidden: may not be decreased from 15 to 1 without a new renewTime "
            'while "checkout-6d5f9c-x2x8p_1f0e" holds the lease (11 s left); renew or release instead'
        ),
        (
            'leaseDurationSeconds decreased from 15 to 1 while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration lowered",
    ),
    pytest.param(
        "duration-shortened",
        update(put("spec.leaseDurationSeconds", 1), old=[put("spec.leaseDurationSeconds", 4)]),
        (
            "spec.leaseDurationSeconds: Forbidden: may not be decreased from 4 to 1 without a new renewTime "
            'while "checkout-6d5f9c-x2x8p_1f0e" holds the lease; renew or release instead'
        ),
        (
            'leaseDurationSeconds decreased from 4 to 1 while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration of an expired lease lowered",
    ),
    pytest.param(
        "transitions-jump",
        update(put("spec.leaseTransitions", 2147483647)),
        (
            "spec.leaseTransitions: Invalid value: 2147483647: must not jump to 1000000000 or more, from "
            "which the counter overflows and no one else can take the lease; write 6"
        ),
        "leaseTransitions jumped from 5 to 2147483647: at 2147483647 it overflows and no takeover succeeds",
        id="a jump to the end",
    ),
    pytest.param(
        "transitions-jump",
        update(put("spec.leaseTransitions", 7)),
        "spec.leaseTransitions: Invalid value: 7: must not increase by more than 1 from 5; write 6",
        "leaseTransitions jumped from 5 to 7; it increases by 1 with each new holder",
        id="a small jump",
    ),
    pytest.param(
        "transitions-decrease",
        update(put("spec.leaseTransitions", 4)),
        (
            "spec.leaseTransitions: Invalid value: 4: must not be less than the old value 5; keep it, or "
            "write 6 with a new holder"
        ),
        "leaseTransitions decreased from 5 to 4: changes of holder can no longer be counted",
        id="fewer transitions",
    ),
    pytest.param(
        "transitions-decrease",
        update(drop("spec.leaseTransitions")),
        (
            "spec.leaseTransitions: Invalid value: null: must not be less than the old value 5; keep it, or "
            "write 6 with a new holder"
        ),
        "leaseTransitions was removed: changes of holder can no longer be counted",
        id="transitions removed",
    ),
    pytest.param(
        "transitions-mismatch",
        update(EDIT),
        "spec.leaseTransitions: Invalid value: 6: must not increase without a new holder",
        "leaseTransitions increased without a new holder: one change of holder too many is counted",
        id="a transition without a new holder",
    ),
    pytest.param(
        "transitions-mismatch",
        update(STOLEN),
        "spec.leaseTransitions: Invalid value: 5: must increase by 1 with a new holder",
        "leaseTransitions did not increase by 1 with the new holder: a change of holder is not counted",
        id="a new holder without a transition",
    ),
    pytest.param(
        "acquire-time-changed",
        update(EDIT, put("spec.acquireTime", "2025-11-20T12:00:00.000000Z")),
        (
            'spec.acquireTime: Invalid value: "2025-11-20T12:00:00.000000Z": must stay within 1 s of the old '
            "value while the holder stays"
        ),
        'acquireTime moved by 1 h 0 min while "checkout-6d5f9c-x2x8p_1f0e" stays the holder',
        id="acquireTime moved",
    ),
    pytest.param(
        "renew-time-backwards",
        update(put("spec.renewTime", "2025-11-20T10:00:00.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T10:00:00.000000Z": must not be more than 3600 s '
            "before the old value; check the holder's clock"
        ),
        "renewTime moved back by 2 h 0 min: the lease may be taken too early; check the holder's clock",
        id="renewTime two hours back",
    ),
    pytest.param(
        "preferred-holder-writer",
        update(EDIT, put("spec.preferredHolder", "a"), put("spec.strategy", "a/b")),
        (
            "spec.preferredHolder: Forbidden: preferredHolder may be set by the API server's coordinated "
            "leader election only; leave it out, or have the policy exempt this writer"
        ),
        "a client set preferredHolder: a holder that sees it stops renewing",
        id="preferredHolder set",
    ),
    pytest.param(
        "strategy-writer",
        update(EDIT, put("spec.strategy", "a/b")),
        (
            "spec.strategy: Forbidden: strategy may be set by the API server's coordinated leader election "
            "only; leave it out, or have the policy exempt this writer"
        ),
        "a client set strategy: coordinated leader election controls the lease now",
        id="strategy set",
    ),
    pytest.param(
        "foreign-release",
        update(put("spec.holderIdentity", ""), review=[by_service_account("shop", "x", "other-1")]),
        (
            "spec.holderIdentity: Forbidden: this write clears the holder of a live lease, which only "
            '"checkout-6d5f9c-x2x8p_1f0e" may do, not pod "other-1"; delete the pod of '
            '"checkout-6d5f9c-x2x8p_1f0e", or wait 15 s'
        ),
        (
            'lease "shop/checkout" was released on behalf of "checkout-6d5f9c-x2x8p_1f0e" 15 s before expiry: '
            "there may be two leaders"
        ),
        id="a release by another pod",
    ),
    pytest.param(
        "foreign-release-across-namespaces",
        update(put("spec.holderIdentity", ""), review=[INTRUDER]),
        (
            "spec.holderIdentity: Forbidden: this write clears the holder of a live lease, which only "
            '"checkout-6d5f9c-x2x8p_1f0e" may do, not "system:serviceaccount:guest:intruder" of another '
            'namespace; delete the pod of "checkout-6d5f9c-x2x8p_1f0e", or wait 15 s'
        ),
        (
            'lease "shop/checkout" was released on behalf of "checkout-6d5f9c-x2x8p_1f0e" 15 s before expiry: '
            "there may be two leaders"
        ),
        id="a release from another namespace",
    ),
    pytest.param(
        "holder-identity-shape",
        created(take("a\x07")),
        'spec.holderIdentity: Invalid value: "a\\x07": must not contain control characters',
        'holder "a\\x07" has control characters, which break terminals and logs',
        id="a control character",
    ),
    pytest.param(
        "holder-identity-shape",
        created(take("a\u200b")),
        ('spec.holderIdentity: Invalid value: "a\\u200b": must not contain bidirectional or invisible characters'),
        'holder "a\\u200b" has invisible characters: it may look like another holder',
        id="an invisible character",
    ),
    pytest.param(
        "holder-identity-shape",
        update(EDIT, take("a" * 600)),
        (f'spec.holderIdentity: Invalid value: "{"a" * 128}...": must not be longer than 512 bytes, is 600'),
        "holderIdentity has 600 bytes, more than 512: each log line of the lease repeats it",
        id="a long holder",
    ),
    pytest.param(
        "holder-identity-mismatch",
        created(take("rival")),
        (
            'spec.holderIdentity: Forbidden: holder "rival" must begin with the name of the writing pod, '
            '"checkout-6d5f9c-x2x8p"; set the elector\'s identity to the pod name, or lower the mode of this rule'
        ),
        ('holder "rival" does not begin with its pod\'s name, "checkout-6d5f9c-x2x8p"; use that as identity'),
        id="not the writer's pod",
    ),
    pytest.param(
        "identity-binding",
        update(RENEWAL, review=[by_user("intruder")]),
        (
            "spec.holderIdentity: Forbidden: only the writers bound in the webhook's policy may write this "
            'lease, and "intruder" is not one of them; ask the operators of lease-webhook'
        ),
        '"intruder" wrote lease "shop/checkout", which the policy binds to other writers',
        id="a writer that is not bound",
    ),
    pytest.param(
        "identity-binding",
        deleted(by_user("intruder")),
        (
            "spec.holderIdentity: Forbidden: only the writers bound in the webhook's policy may write this "
            'lease, and "intruder" is not one of them; ask the operators of lease-webhook'
        ),
        '"intruder" deleted lease "shop/checkout", which the policy binds to other writers',
        id="a deletion by a writer that is not bound",
    ),
    pytest.param(
        "identity-binding",
        update(STOLEN, review=[OWN]),
        (
            'spec.holderIdentity: Forbidden: the holder of this lease must match the binding "${pod}_*", '
            '"manual-?", and "rival-5b8f7d-lk2mn_77aa" does not; ask the operators of lease-webhook'
        ),
        'holder "rival-5b8f7d-lk2mn_77aa" does not match the binding "${pod}_*" of this lease',
        id="a holder that does not fit",
    ),
    pytest.param(
        "identity-binding",
        update(STOLEN, review=[PODLESS]),
        (
            'spec.holderIdentity: Forbidden: "system:serviceaccount:shop:checkout" does not write from a '
            'pod, so its holder name cannot be checked (binding "${pod}_*", "manual-?"); write from a pod, '
            "or ask the operators of lease-webhook"
        ),
        (
            '"system:serviceaccount:shop:checkout" does not write from a pod, so its holder name cannot be '
            'checked (binding "${pod}_*")'
        ),
        id="a bound writer without a pod",
    ),
    pytest.param(
        "node-lease-holder",
        update(STOLEN, review=[NODE, by_node("n1")]),
        'spec.holderIdentity: Forbidden: a node may name only itself, "n1", as the holder of its lease',
        'a node made "rival-5b8f7d-lk2mn_77aa" the holder of the lease of "n1"',
        id="a node that names another holder",
    ),
    pytest.param(
        "node-lease-writer",
        update(STOLEN, review=[NODE, by_user("dev")]),
        ('spec: Forbidden: this lease may be written by "system:node:n1" only; have the policy exempt this writer'),
        '"dev" wrote the lease of node "n1": a dead node may look alive',
        id="a user writes a node's lease",
    ),
    pytest.param(
        "apiserver-lease-writer",
        update(EDIT, old=[IDENTITY], review=[SERVER]),
        "spec: Forbidden: an API server's identity lease may be written by system:apiserver only",
        '"system:serviceaccount:shop:checkout" wrote the identity lease of an API server',
        id="an API server's lease",
    ),
    pytest.param(
        "apiserver-lease-writer",
        update(drop("metadata.labels"), old=[IDENTITY], review=[SERVER]),
        (
            "metadata.labels: Forbidden: apiserver.kubernetes.io/identity may be removed from an API "
            "server's identity lease by system:apiserver only"
        ),
        '"system:serviceaccount:shop:checkout" removed the identity label of an API server\'s lease',
        id="the label of an API server's lease",
    ),
    pytest.param(
        "live-lease-deleted",
        deleted(),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" for another 11 s; stop '
            "its holder first, or delete the lease after that"
        ),
        (
            'lease "shop/checkout" of "checkout-6d5f9c-x2x8p_1f0e" was deleted 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a live lease deleted",
    ),
    pytest.param(
        "live-lease-deleted",
        deleted(old=[STAMPLESS]),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" for another 11 s by '
            "its holder's clock; stop its holder first, or delete the lease after that"
        ),
        (
            'lease "shop/checkout" of "checkout-6d5f9c-x2x8p_1f0e" was deleted 11 s before expiry by its '
            "holder's clock: there may be two leaders"
        ),
        id="a live lease without stamps deleted",
    ),
    pytest.param(
        "owner-reference-added",
        update(put("metadata.ownerReferences", [OWNER]), review=[INTRUDER]),
        (
            'metadata.ownerReferences: Forbidden: the garbage collector deletes this lease if "Deployment" '
            '"checkout" does not exist; add owners when the lease is created'
        ),
        'the garbage collector deletes this lease if "Deployment" "checkout" does not exist, held or not',
        id="an owner added",
    ),
    pytest.param(
        "owner-reference-removed",
        update(drop("metadata.ownerReferences"), old=[put("metadata.ownerReferences", [OWNER])], review=[INTRUDER]),
        (
            'metadata.ownerReferences: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e", and only its '
            'holder may remove its owner "Deployment" "checkout", in a renewal; remove it after the release'
        ),
        'the lease of "checkout-6d5f9c-x2x8p_1f0e" lost its owner "Deployment" "checkout"',
        id="an owner removed",
    ),
    pytest.param(
        "candidate-across-namespaces",
        make_review(by_service_account("guest", "intruder"), new=make_candidate()),
        (
            'spec.leaseName: Forbidden: "system:serviceaccount:guest:intruder" belongs to another namespace; the API '
            'server may make this candidate the holder of lease "checkout"; bind that lease'
        ),
        '"system:serviceaccount:guest:intruder" of another namespace wrote a candidate of lease "shop/checkout": it '
        "may become the leader",
        id="a candidate by another namespace",
    ),
    pytest.param(
        "ping-time-writer",
        candidate_updated(put("spec.pingTime", "2025-11-20T12:00:11.000000Z")),
        (
            "spec.pingTime: Forbidden: pingTime may be set by the API server's coordinated leader election "
            "only; leave it as it is"
        ),
        "a client set pingTime: the election may leave this candidate out",
        id="pingTime set",
    ),
    pytest.param(
        "candidate-renew-time-in-future",
        candidate_updated(put("spec.renewTime", "2025-11-20T12:00:20.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T12:00:20.000000Z": must not be more than 10 s ahead '
            "of the API server (12:00:04Z), is 16 s ahead; write the current time, or set the client's clock"
        ),
        "renewTime is 16 s ahead of the API server (12:00:04Z): set the client's clock",
        id="a candidate 16 seconds ahead",
    ),
    pytest.param(
        "candidate-renew-time-backwards",
        candidate_updated(put("spec.renewTime", "2025-11-20T10:59:59.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T10:59:59.000000Z": must not be more than 3600 s '
            "before the old value; check the candidate's clock"
        ),
        "renewTime moved back by 1 h 0 min: the election may leave this candidate out",
        id="a candidate an hour back",
    ),
    pytest.param(
        "candidate-changed",
        candidate_updated(put("spec.binaryVersion", "1.37.0")),
        (
            "spec.binaryVersion: Forbidden: binaryVersion may not change after creation; delete and "
            "recreate the candidate"
        ),
        "binaryVersion changed after creation: the election may choose another leader",
        id="a candidate changed",
    ),
]


@pytest.mark.parametrize(("rule", "review", "denial", "warning"), TEXTS)
def test_text(rule: str, review: Document, denial: str, warning: str) -> None:
    (found,) = findings(review, now=NOW + 4 * SECOND, binding=BOUND, stamps=STAMPS)[rule]
    assert str(found.error) == denial
    assert found.happened is not None
    assert found.happened.within(256, page="PAGE") == warning


def test_each_policy_rule_has_both_texts() -> None:
    assert {case.values[0] for case in TEXTS} == {rule.id for rule in RULES.values() if not rule.parity}


@pytest.mark.parametrize(("rule", "review", "denial", "warning"), TEXTS)
def test_a_warning_says_what_happened_in_120_characters(rule: str, review: Document, denial: str, warning: str) -> None:
    (found,) = findings(review, now=NOW + 4 * SECOND, binding=BOUND, stamps=STAMPS)[rule]
    assert found.happened is not None
    short = Statement(found.happened.text, ("x",) * len(found.happened.names))
    assert rule == "renewal-stamp-tampered" or len(f"{rule}: {short.within(256)}") <= 120, "it shows a manager's name"
    for refusal in ("Forbidden", "Invalid value", "must", "may not", "retry"):
        assert refusal not in warning
    assert (denial + warning).isprintable()
