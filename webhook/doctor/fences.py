"""Compares the fences in a cluster with those of the policy file, as far as the documents show them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.doctor.checks import Report
from webhook.doctor.documents import ClusterObject, Documents, danger, difference
from webhook.fence import ACTIONS, BINDING, CLOCK, MUTATING_BINDING, MUTATING_POLICY, POLICY, manifests, object_name
from webhook.findings import Finding, word
from webhook.policy.fences import Fence

_EXPORT: Final = "lease-webhook export fence {} --name {}{} | kubectl apply --server-side --force-conflicts -f -"
_NAME: Final = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


def examine_fences(documents: Documents, fences: Sequence[Fence], file: str) -> Iterator[Report]:
    """Yield a report for each fence of the policy `file`, and for each object of a fence that it no longer has.

    A fence may be stricter than the file: it was exported with --mode.
    """
    if not documents.shows_policies:
        return
    wanted = set[str]()
    for fence in fences:
        name = object_name(fence)
        bound = documents.named(BINDING).get(name, ClusterObject(BINDING)).spec.get("validationActions")
        there = replace(fence, mode=next(mode for mode in ACTIONS if ACTIONS[mode] == bound or mode == fence.mode))
        mode = "" if there == fence else f" --mode {there.mode}"
        note = mode and f"{name} is stricter than {file}: set `mode: {there.mode}` of the fence there"
        export = _EXPORT.format(file, word(fence.name), mode)
        yield Report(name, "", tuple(_about(there, documents, export)), is_fence=True, note=note)
        wanted |= {manifest["metadata"]["name"] for manifest in manifests(fence)}
    for name in sorted({one.metadata.name for one in documents.fence_objects if one.is_of_a_fence} - wanted):
        yield Report(name, "", tuple(_about_unlisted(name, documents, is_left_over=bool(fences))), is_fence=True)


def _about(fence: Fence, documents: Documents, export: str) -> Iterator[Finding]:
    for manifest in (one for one in manifests(fence) if one["kind"] not in documents.unread):
        name = manifest["metadata"]["name"]
        applied = documents.named(manifest["kind"]).get(name)
        if applied is None:
            yield danger(
                "fence-not-applied",
                f"{manifest['kind']} {name}",
                "the policy file has this fence, but this object was not found: writes are not denied as it says.",
                export,
            )
        elif changed := difference(manifest["spec"], applied.spec):
            yield danger(
                "fence-drift",
                f"{manifest['kind']} {changed}",
                "the fence in the cluster differs from the one in the policy file.",
                export,
            )
    yield from _about_the_lease(fence, documents)
    yield from _about_tokens(fence, documents)


def _about_the_lease(fence: Fence, documents: Documents) -> Iterator[Finding]:
    leases = {one.place: one for one in documents.of("Lease")}
    if not leases:
        return
    lease = leases.get(fence.lease_text)
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
    if fence.by_stamp:
        yield from _about_the_stamp(fence, lease)
        return
    known = [one for one in documents.of("Pod") if one.metadata.namespace == fence.writers[0][0]]
    pods = [one for one in known if _is_holder(one, fence, holder)]
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
                f"pod {pod.place}, serviceAccountName: {account[1]}",
                "this pod holds the lease, and its service account is not a writer of the fence: its writes are not"
                " fenced.",
                f"add {'/'.join(account)} to `writers`.",
            )


def _about_the_stamp(fence: Fence, lease: ClusterObject) -> Iterator[Finding]:
    stamp = (lease.metadata.annotations or {}).get(f"lease-webhook/writer-{fence.suffix}", "")
    user = stamp.partition(" ")[2]
    if not stamp:
        yield danger(
            "fence-lease-unstamped",
            f"lease {fence.lease_text}",
            "the API server has stamped no writer of this lease, so writes of the leader itself are denied.",
            "apply deploy/stamp; the next renewal is stamped after:"
            f" kubectl label namespace {word(fence.namespace)} lease-webhook/stamp=required",
        )
    elif user not in fence.usernames:
        yield danger(
            "fence-writer-elsewhere",
            f"lease {fence.lease_text}, written by {user}",
            "this user holds the lease, and it is not a writer of the fence: its writes are not fenced.",
            "add its service account to `writers`.",
        )


def _about_tokens(fence: Fence, documents: Documents) -> Iterator[Finding]:
    for secret in documents.of("Secret"):
        account = (secret.metadata.annotations or {}).get("kubernetes.io/service-account.name", "")
        if (
            secret.type == "kubernetes.io/service-account-token"
            and (secret.metadata.namespace, account) in fence.writers
        ):
            yield danger(
                "fence-token-without-pod",
                f"Secret {secret.place}",
                "its token is not bound to a pod: writes with it are denied while the lease is held, even if the holder"
                " makes them.",
                "use the token that the kubelet mounts into pods, and delete the Secret.",
            )


def _about_unlisted(name: str, documents: Documents, *, is_left_over: bool) -> Iterator[Finding]:
    """Check a policy and its binding by themselves: the policy file does not have them, or there is no file."""
    has_validating = any(name in documents.named(kind) for kind in (POLICY, BINDING))
    kind, kind_of_binding = (POLICY, BINDING) if has_validating else (MUTATING_POLICY, MUTATING_BINDING)
    policy, binding = documents.named(kind).get(name), documents.named(kind_of_binding).get(name)
    if policy is None or binding is None:
        yield danger(
            "fence-incomplete",
            f"{kind if binding else kind_of_binding} {name}",
            "it does not exist, and its counterpart alone denies nothing.",
            "apply what `lease-webhook export fence` prints, or delete the counterpart.",
        )
    # The clock fails open: an error in it may not cost an honest leader a write.
    elif _denies(binding) and policy.spec.get("failurePolicy") == "Ignore" and not name.endswith(CLOCK):
        yield danger(
            "fence-fails-open",
            f"{POLICY} spec.failurePolicy: Ignore",
            "if the expressions cannot be evaluated, writes of an old leader are admitted.",
            "set failurePolicy: Fail.",
        )
    if is_left_over:
        yield danger(
            "fence-left-over",
            f"{kind} {name}",
            "lease-webhook made it, and the policy file no longer has it: writes of its writers are still fenced.",
            f"kubectl delete {kind_of_binding.lower()},{kind.lower()} {word(name)}",
        )


def _denies(binding: ClusterObject) -> bool:
    actions = binding.spec.get("validationActions")
    return isinstance(actions, list) and "Deny" in actions


def _is_holder(pod: ClusterObject, fence: Fence, holder: str) -> bool:
    names = {"pod": pod.metadata.name, "node": str(pod.spec.get("nodeName") or "")}
    return any(one.fits(names[one.claim], holder) for one in fence.holders)


def _has_form(fence: Fence, holder: str) -> bool:
    """True if the name of some pod or node would make a template match."""
    return any(
        re.fullmatch(
            f"{re.escape(one.before)}{_NAME}{re.escape(one.after)}{'.*' if one.open else ''}", holder, re.DOTALL
        )
        for one in fence.holders
    )
