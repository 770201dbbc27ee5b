"""Inputs in which `audit` reports each of its findings.

`EXAMPLES` has objects that are read as a dump at NOON (`dump`), those that a watch shows one after the other (`watch`),
the log of an incident in tests/data (`log`), or the module that tests the finding because it takes more than that
(`tested_in`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tests.factories import Document, Tweak, drop, make_candidate, make_entry, make_lease, put

NOON: Final = "2025-11-20T12:00:04Z"


class Example(Struct, frozen=True, kw_only=True):
    """An input in one of four forms, in which `audit` reports the finding."""

    dump: Sequence[Document] = ()
    watch: Sequence[Document] = ()
    log: str = ""
    tested_in: str = ""


def _list_strategies(*strategies: str) -> list[Tweak]:
    """Return the changes to a candidate of v1alpha1, which has a list of strategies instead of one."""
    alpha = put("apiVersion", "coordination.k8s.io/v1alpha1")
    return [alpha, drop("spec.strategy"), put("spec.preferredStrategies", list(strategies))]


def _renew_each_ten_seconds() -> list[Document]:
    """Return what a watch shows of a lease whose next renewal would come just before it expires."""
    return [
        make_lease(
            put("metadata.resourceVersion", str(4711 + number)),
            put("spec.renewTime", f"2025-11-20T11:59:{10 * number:02}.000000Z"),
            put("metadata.managedFields[0].time", f"2025-11-20T11:59:{10 * number:02}Z"),
        )
        for number in range(6)
    ]


EXAMPLES: Final[dict[str, Example]] = {
    "holder-gone": Example(
        dump=[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "another", "namespace": "shop"}}, make_lease()]
    ),
    "node-gone": Example(
        dump=[
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-9"}},
            make_lease(put("metadata.namespace", "kube-node-lease"), put("metadata.name", "worker-1")),
        ]
    ),
    "object-types": Example(dump=[make_lease(put("spec.leaseDurationSeconds", "15"))]),
    "write-fenced": Example(log="incidents/fenced/audit.log.gz"),
    "expired": Example(dump=[make_lease(put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"))]),
    "read-refused": Example(log="measured-incidents/token-expired/audit.jsonl.gz"),
    "write-refused": Example(log="incidents/steal-denied/audit.log.gz"),
    "taken-late": Example(log="measured-incidents/slow-retries/audit.jsonl.gz"),
    "not-taken-up": Example(
        dump=[
            make_lease(
                put("spec.strategy", "OldestEmulationVersion"),
                put("metadata.managedFields[0].manager", "kube-apiserver"),
                put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"),
            )
        ]
    ),
    "election-stalled": Example(
        dump=[
            make_lease(
                put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"),
                put("spec.strategy", "OldestEmulationVersion"),
                put("spec.preferredHolder", "checkout-1"),
            )
        ]
    ),
    "leader-lost": Example(log="incidents/leader-killed/audit.log.gz"),
    "renewal-late": Example(log="incidents/etcd-stalled/audit.log.gz"),
    "lease-stolen": Example(log="incidents/lease-stolen/audit.log.gz"),
    "foreign-release": Example(log="measured-incidents/foreign-release/audit.jsonl.gz"),
    "lease-deleted": Example(log="incidents/lease-deleted/audit.log.gz"),
    "identity-shared": Example(log="incidents/one-identity/audit.log.gz"),
    "lease-shared": Example(
        dump=[
            make_lease(
                put(
                    "metadata.managedFields",
                    [make_entry("holderIdentity", "renewTime"), make_entry("strategy", manager="other")],
                )
            )
        ],
        log="incidents/two-applications/audit.log.gz",
    ),
    "abandoned": Example(dump=[make_lease(put("metadata.managedFields[0].time", "2025-11-10T12:00:00Z"))]),
    "holder-clock": Example(dump=[make_lease(put("spec.renewTime", "2025-11-20T21:00:00.000000Z"))]),
    "acquire-time-foreign": Example(
        dump=[
            make_lease(
                put(
                    "metadata.managedFields",
                    [
                        make_entry("acquireTime", "leaseTransitions"),
                        make_entry("holderIdentity", "renewTime", manager="kubectl-patch"),
                    ],
                )
            )
        ]
    ),
    "timing-tight": Example(dump=[make_lease(put("spec.leaseDurationSeconds", 5))], watch=_renew_each_ten_seconds()),
    "lease-without-stamps": Example(
        dump=[make_lease(put("metadata.name", "other")), make_lease(drop("metadata.managedFields"))]
    ),
    "heartbeat-silent": Example(
        dump=[
            make_lease(
                put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"),
                drop("spec.acquireTime"),
                drop("spec.leaseTransitions"),
            )
        ]
    ),
    "renewal-stamp-tampered": Example(dump=[make_lease(put("metadata.managedFields[0].time", "2025-11-20T13:00:00Z"))]),
    "candidate-strategy-conflict": Example(
        dump=[
            make_candidate(*_list_strategies("a.b/c", "a.b/d")),
            make_candidate(put("metadata.name", "other"), *_list_strategies("a.b/d", "a.b/c")),
        ]
    ),
    "lease-preferred-holder": Example(dump=[make_lease(put("spec.preferredHolder", "x"))]),
    "lease-strategy": Example(dump=[make_lease(put("spec.strategy", "x"))]),
    "object-metadata": Example(dump=[make_lease(put("metadata.labels", {"a b": "c"}))]),
    "object-name": Example(dump=[make_lease(put("metadata.name", "A"))]),
    "clusters-mixed": Example(tested_in="tests/claims/test_tenures.py"),
    "handed-over": Example(tested_in="tests/claims/test_names_of_one_pod.py"),
    "holder-removed": Example(tested_in="tests/claims/test_both.py"),
    "lease-contended": Example(tested_in="tests/claims/test_contests.py"),
    "preferred-holder-foreign": Example(tested_in="tests/truth/predicates.py"),
    "stamp-missing": Example(tested_in="tests/cli/test_stamps.py"),
    "stored-other-than-asked": Example(tested_in="tests/claims/test_rewritten.py"),
    "token-ahead": Example(tested_in="tests/cli/test_tokens.py"),
    "token-old": Example(tested_in="tests/cli/test_tokens.py"),
}
