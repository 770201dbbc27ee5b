"""Texts of terminals that need a cluster are what the code makes of such a cluster, but for times, hashes and names."""

import re
from typing import Any

import pytest

from tests.cel_values import value
from tests.doctor.test_in_force import NOW, deployed, metrics, named
from tests.factories import make_entry, make_lease, make_review, put, to_bytes
from tests.policy.fences.made import fence
from tests.stamp_policies import GUARD
from tools.docs.pages import DOCS, ROOT, find_blocks
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.file import load
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.doctor.in_force import find_facts, interpret_proof, parse_samples
from webhook.api_server.fence.objects import make_fence_manifests
from webhook.browser.kubectl import format_as_kubectl
from webhook.kubernetes.review import decode
from webhook.kubernetes.times import parse

OPERATOR = "system:serviceaccount:shop:operator"
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d(?: \d\d:\d\dZ)?|\b[0-9a-f]{8}\b|lease-webhook-\w+-\w{5}\b|\b\d+ denied|-unreadable \d+"
)


def join_blocks(page: str) -> str:
    return "\n".join(block.text for block in find_blocks(DOCS / page))


@pytest.mark.parametrize("page", ["install.md", "kind.md"])
def test_status_of_an_installation(page: str) -> None:
    depth = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "lease-webhook-depth"}, "spec": {}}
    spec = {"policyName": "lease-webhook-depth", "validationActions": ["Deny"]}
    binding = named("ValidatingAdmissionPolicyBinding", "lease-webhook-depth", spec=spec)
    exposed = re.sub(r"lease_webhook_(reviews|findings)_total.*\n", "", metrics())
    exposed += 'lease_webhook_reviews_total{verdict="denied"} 1.0\n'
    exposed += 'lease_webhook_findings_total{mode="deny",rule="time-unreadable"} 1.0\n'
    pods = [one for pod in ("2d84w", "86kh8") for one in parse_samples(f"lease-webhook-6b76887967-{pod}", exposed)]
    known = find_facts(Documents([*deployed(), depth, binding]), pods, NOW)
    (text,) = [
        block.text for block in find_blocks(DOCS / page) if block.text.startswith("$ lease-webhook status --wait")
    ]
    _, headline, *lines = text.splitlines()
    assert headline == "in force: " + interpret_proof(is_created=False, said="rule time-unreadable")[1]
    rows = re.split(r"\n(?=   \S)", "\n".join(lines))
    described = [" ".join(row.split()) for row in rows]
    assert [VARYING.sub("*", one) for one in described] == [
        VARYING.sub("*", f"{one.subject} {one.text}") for one in known
    ]


def test_what_the_script_of_the_broken_election_prints() -> None:
    script = (ROOT / "deploy" / "try").read_text()
    (text,) = [block.text for block in find_blocks(DOCS / "kind.md") if "checkout-a renews" in block.text]
    sentences = {re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in text.splitlines()}
    assert sentences == set(re.findall(r"printf '%s (checkout-.*)\\n'", script))


def test_the_refused_steal_of_the_script() -> None:
    before = [
        put("metadata.name", "checkout"),
        put("metadata.namespace", "lease-demo"),
        put("spec.holderIdentity", "checkout-b"),
        put("spec.leaseDurationSeconds", 6),
        put("spec.renewTime", "2026-11-25T13:51:08.000000Z"),
        put("metadata.managedFields", [make_entry("holderIdentity", "renewTime", time="2026-11-25T13:51:08Z")]),
    ]
    review = make_review(
        put("request.operation", "UPDATE"),
        put("request.name", "checkout"),
        put("request.namespace", "lease-demo"),
        put("request.userInfo", {"username": "system:serviceaccount:lease-demo-thief:intruder"}),
        new=make_lease(*before, put("spec.holderIdentity", "intruder")),
        old=make_lease(*before),
    )
    request = decode(to_bytes(review))
    denial = format_as_kubectl(evaluate(request, load("standard"), parse("2026-11-25T13:51:08.400000Z")), request)
    assert denial in join_blocks("kind.md")


def written_by(pod: str, name: str) -> dict[str, Any]:
    user = {"username": OPERATOR, "extra": {"authentication.kubernetes.io/pod-name": [pod]}}
    lease = {"spec": {"holderIdentity": "op-a_4b1c", "leaseTransitions": 3}}
    request = {"operation": "CREATE", "name": name, "namespace": "shop", "userInfo": user}
    return {"request": request, "object": {}, "params": lease}


def test_the_fence_of_the_page() -> None:
    policy, binding = make_fence_manifests(fence())
    for manifest in (policy, binding):
        kind = f"{manifest['kind'].lower()}.admissionregistration.k8s.io"
        assert f"\n{kind}/{manifest['metadata']['name']} serverside-applied\n" in join_blocks("fence.md")
    spec = policy["spec"]
    for variable in spec["variables"]:
        # The library does not know it; names of more than 63 characters are cut by it.
        variable["expression"] = re.sub(r"\.find\([^)]*\)", "", variable["expression"])
    (validation,) = spec["validations"]
    assert value(spec, validation["expression"], written_by("op-a", "d4"))
    assert not value(spec, validation["expression"], written_by("op-b", "d3"))
    message = value(spec, validation["messageExpression"], written_by("op-b", "d3"))
    name = policy["metadata"]["name"]
    subject = f"ValidatingAdmissionPolicy '{name}' with binding '{name}'"
    assert f"Warning: Validation failed for {subject}: {message}\n" in join_blocks("fence.md")
    assert f"{subject} denied request: {message}\n" in join_blocks("fence.md")


def test_the_denial_of_the_guard() -> None:
    writer = "313cca89-1111-4111-8111-111111111111 system:serviceaccount:shop:checkout"
    (text,) = [block.text for block in find_blocks(DOCS / "denied.md") if "stamp-guard' with binding" in block.text]

    def lease(writer: str, written: str, holder: str) -> dict[str, Any]:
        annotations = {"lease-webhook/writer-x": writer, "lease-webhook/written-x": written}
        entry = {"manager": "lease-webhook-stamp", "time": "2000-01-01T00:00:00Z"}
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": written}
        return {
            "metadata": {"annotations": annotations, "managedFields": [entry], "resourceVersion": "7"},
            "spec": spec,
        }

    user = {"username": "dev", "groups": [], "extra": {}}
    data = {
        "request": {"operation": "UPDATE", "userInfo": user, "options": {}},
        "object": lease("- dev", "2026-11-23T15:18:44Z", "dev"),
        "oldObject": lease(writer, "2026-11-23T15:18:41Z", "checkout-0"),
        "namespaceObject": {"metadata": {"labels": {}}},
    }
    denying = [one for one in GUARD["validations"] if not value(GUARD, one["expression"], data)]
    message = value(GUARD, denying[0]["messageExpression"], data)
    name = "lease-webhook-stamp-guard"
    assert text.endswith(f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {message}\n")
