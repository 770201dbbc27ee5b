"""Compares the fences in a cluster with those of the policy file, as far as the documents show them.

Each check needs its evidence among the documents: without any Lease, nothing is reported about leases.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.audit.command_words import word
from webhook.doctor.configuration import danger
from webhook.doctor.documents import ClusterObject, FenceDocuments
from webhook.doctor.examine import Report
from webhook.fence import API_VERSION, BINDING, POLICY, manifests, object_name
from webhook.policy.fences import Fence
from webhook.reports.model import Finding

MIN_MINOR: Final = 30
"""ValidatingAdmissionPolicy is generally available since Kubernetes 1.30."""

_EXPORT: Final = "lease-webhook export fence POLICY --name {name} | kubectl apply --server-side --force-conflicts -f -"
_NAME: Final = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


def examine_fences(documents: FenceDocuments, fences: Sequence[Fence]) -> Iterator[Report]:
    """Yield a report for each fence of the policy file, and for each object of a fence that the file no longer has."""
    if not documents.has_fences:
        return
    wanted = {object_name(fence): fence for fence in fences}
    for name, fence in wanted.items():
        yield Report(name, "", tuple(_about(fence, documents)), is_fence=True)
    for name in sorted({*documents.policies, *documents.bindings} - set(wanted)):
        if any(one.is_of_a_fence for one in documents.pair(name)):
            left_over = [_left_over(name)] if fences else []
            yield Report(name, "", (*_without_policy_file(name, documents), *left_over), is_fence=True)


def _about(fence: Fence, documents: FenceDocuments) -> Iterator[Finding]:
    name = object_name(fence)
    for manifest in manifests(fence):
        applied = (documents.policies if manifest["kind"] == POLICY else documents.bindings).get(name)
        if applied is None:
            yield danger(
                "fence-not-applied",
                f"{manifest['kind']} {name}",
                "the policy file has this fence, but the cluster does not: no write is denied.",
                _EXPORT.format(name=word(fence.name)),
            )
            continue
        if applied.api_version != API_VERSION:
            yield danger(
                "fence-api-old",
                f"{applied.kind} apiVersion: {applied.api_version}",
                "before v1 the API may be switched off, and fields are missing.",
                f"use {API_VERSION}, which every API server since 1.{MIN_MINOR} serves.",
            )
        difference = _difference(manifest["spec"], applied.spec)
        if difference:
            yield danger(
                "fence-drift",
                f"{manifest['kind']} {difference}",
                "the fence in the cluster differs from the one in the policy file.",
                _EXPORT.format(name=word(fence.name)),
            )
    if documents.minor is not None and documents.minor < MIN_MINOR:
        yield danger(
            "fence-server-too-old",
            f"serverVersion: 1.{documents.minor}",
            "ValidatingAdmissionPolicy is not generally available there, and tokens may not contain their node's name.",
            f"upgrade to 1.{MIN_MINOR} or newer before you rely on a fence.",
        )
    yield from _about_the_lease(fence, documents)
    yield from _about_tokens(fence, documents)
    yield from _about_resources(fence, documents)


def _about_the_lease(fence: Fence, documents: FenceDocuments) -> Iterator[Finding]:
    if not documents.leases:
        return
    lease = documents.leases.get((fence.namespace, fence.lease))
    if lease is None:
        effect = "every write of its writers is denied." if fence.denies_if_lease_is_missing else "no write is denied."
        yield danger(
            "fence-lease-missing",
            f"lease {fence.lease_text}",
            f"no lease has this name: {effect}",
            "correct `lease` in the policy file, or start the operator, which creates its lease.",
        )
        return
    holder = lease.spec.get("holderIdentity")
    if not isinstance(holder, str) or not holder:
        return
    pods = [one for one in documents.pods.values() if _is_pod_of(one, fence, holder)]
    known = any(namespace == fence.writers[0][0] for namespace, _ in documents.pods)
    if not pods and (known or not _has_form(fence, holder)):
        yield danger(
            "fence-holder-unmatched",
            f"lease {fence.lease_text}, holderIdentity: {holder}",
            "this holder matches no template of the fence for any pod, so writes of the leader itself are denied.",
            "write `holder` as the operator builds its identity, or let the operator use its pod's name (POD_NAME).",
        )
    for pod in pods:
        account = (pod.metadata.namespace, str(pod.spec.get("serviceAccountName") or "default"))
        if account not in fence.writers:
            yield danger(
                "fence-writer-elsewhere",
                f"pod {'/'.join(pod.place)}, serviceAccountName: {account[1]}",
                "this pod holds the lease, and its service account is not a writer of the fence: its writes are not"
                " fenced.",
                f"add {'/'.join(account)} to `writers`.",
            )


def _about_tokens(fence: Fence, documents: FenceDocuments) -> Iterator[Finding]:
    for secret in documents.secrets:
        account = (secret.metadata.annotations or {}).get("kubernetes.io/service-account.name", "")
        if (
            secret.type == "kubernetes.io/service-account-token"
            and (secret.metadata.namespace, account) in fence.writers
        ):
            yield danger(
                "fence-token-without-pod",
                f"Secret {'/'.join(secret.place)}",
                "its token is not bound to a pod: writes with it are denied while the lease is held, even if the holder"
                " makes them.",
                "use the token that the kubelet mounts into pods, and delete the Secret.",
            )


def _about_resources(fence: Fence, documents: FenceDocuments) -> Iterator[Finding]:
    for one in fence.resources:
        if one.group in documents.served and one.path not in documents.served[one.group]:
            yield danger(
                "fence-resource-not-served",
                f"resources: {one}",
                "the API server does not serve this resource, so the fence never sees it.",
                "correct the name in the policy file; kubectl api-resources lists them.",
            )


def _without_policy_file(name: str, documents: FenceDocuments) -> Iterator[Finding]:
    """Check the objects of a fence by themselves."""
    policy, binding = documents.policies.get(name), documents.bindings.get(name)
    if policy is None or binding is None:
        yield danger(
            "fence-incomplete",
            f"{POLICY if binding else BINDING} {name}",
            "it does not exist, and its counterpart alone denies nothing.",
            "apply what `lease-webhook export fence` prints, or delete the counterpart.",
        )
        return
    actions = binding.spec.get("validationActions")
    denies = isinstance(actions, list) and "Deny" in actions
    if denies and policy.spec.get("failurePolicy") == "Ignore":
        yield danger(
            "fence-fails-open",
            f"{POLICY} spec.failurePolicy: Ignore",
            "if the expressions cannot be evaluated, writes of an old leader are admitted.",
            "set failurePolicy: Fail.",
        )


def _left_over(name: str) -> Finding:
    return danger(
        "fence-left-over",
        f"{POLICY} {name}",
        "lease-webhook made it, and the policy file no longer has it: writes of its writers are still fenced.",
        f"kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy {word(name)}",
    )


def _is_pod_of(pod: ClusterObject, fence: Fence, holder: str) -> bool:
    names = {"pod": pod.metadata.name, "node": str(pod.spec.get("nodeName") or "")}
    is_of_writers = pod.metadata.namespace == fence.writers[0][0]
    return is_of_writers and any(one.fits(names[one.claim], holder) for one in fence.holders)


def _has_form(fence: Fence, holder: str) -> bool:
    """True if the name of some pod or node would make a template match."""
    return any(
        re.fullmatch(
            f"{re.escape(one.before)}{_NAME}{re.escape(one.after)}{'.*' if one.open else ''}", holder, re.DOTALL
        )
        for one in fence.holders
    )


def _difference(wanted: object, found: object, path: str = "spec") -> str:
    """Return the first place at which two values differ, with the value found there; "" if they are equal."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = [(f"{path}.{key}", wanted.get(key), found.get(key)) for key in sorted({*wanted, *found})]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [
            (f"{path}[{number}]", one, other) for number, (one, other) in enumerate(zip(wanted, found, strict=True))
        ]
    else:
        return "" if wanted == found else f"{path}: {found}"
    return next(filter(None, (_difference(one, other, inner) for inner, one, other in pairs)), "")
