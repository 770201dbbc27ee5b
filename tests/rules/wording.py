"""The words of denials and warnings, and the writes whose wording the tests of the rules pin.

The wording of a policy rule is pinned in the module that tests it, under `WORDING`, and nowhere else; other tests
compare type, field path and rule id.
"""

from tests.factories import (
    NOW,
    Document,
    drop,
    put,
)
from tests.rules.findings import (
    RIVAL,
    SECOND,
    by_service_account,
    findings,
    in_namespace,
    take,
    written,
)
from webhook.admission.rules.finding import Statement
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.stamps import Stamps

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


def check(rule: str, review: Document, denial: str, warning: str) -> None:
    """Compare both texts of a rule's one finding; a warning says what happened, in 120 characters with short names."""
    (finding,) = findings(review, now=NOW + 4 * SECOND, binding=BOUND, stamps=STAMPS)[rule]
    assert str(finding.error) == denial
    assert finding.happened is not None
    assert finding.happened.shorten(256, page="PAGE") == warning
    short = Statement(finding.happened.text, ("x",) * len(finding.happened.names))
    assert rule == "renewal-stamp-tampered" or len(f"{rule}: {short.shorten(256)}") <= 120, "it shows a manager's name"
    for refusal in ("Forbidden", "Invalid value", "must", "may not", "retry"):
        assert refusal not in warning
    assert (denial + warning).isprintable()
