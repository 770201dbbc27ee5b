"""Whether the fences in a cluster hold what the policy file says, as far as the documents at hand show it.

Each check speaks only where its evidence is among the documents: no Lease there, nothing about leases.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.examine import Report
from webhook.doctor.surroundings import Document
from webhook.fence.manifests import API_VERSION, BINDING, LABELS, POLICY, manifests, object_name
from webhook.policy.fences.model import Fence

KINDS: Final = (POLICY, BINDING, "Lease", "Pod", "Secret", "APIResourceList")
"""Everything else is not looked at, but for the object that names the server's version."""

OLDEST_MINOR: Final = 30
"""ValidatingAdmissionPolicy is generally available since Kubernetes 1.30."""

_EXPORT: Final = "lease-webhook export fence POLICY --name {name} | kubectl apply --server-side --force-conflicts -f -"
_NAME: Final = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class _Object(Struct, frozen=True, rename="camel"):
    """Any object; `spec` as it stands."""

    kind: str
    api_version: str = ""
    metadata: _Metadata = _Metadata()
    spec: dict[str, Any] | None = None
    type: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def is_ours(self) -> bool:
        labels = self.metadata.labels or {}
        return all(labels.get(key) == value for key, value in LABELS.items())


class _Resource(Struct, frozen=True):
    name: str


class _ResourceList(Struct, frozen=True, rename="camel"):
    kind: str
    group_version: str
    resources: tuple[_Resource, ...] = ()


class Surroundings(Struct, frozen=True):
    """The documents by what they are."""

    policies: dict[str, _Object]
    bindings: dict[str, _Object]
    leases: dict[tuple[str, str], _Object]
    pods: dict[tuple[str, str], _Object]
    secrets: tuple[_Object, ...]
    served: dict[str, set[str]]
    minor: int | None

    @property
    def has_fences(self) -> bool:
        """Whether policies of the API server are among the documents at all."""
        return bool(self.policies or self.bindings)

    @property
    def has_own_fences(self) -> bool:
        """Whether some of them were made by lease-webhook."""
        return any(one.is_ours for one in (*self.policies.values(), *self.bindings.values()))


def surroundings(found: Iterable[Document]) -> Surroundings:
    """Sort the documents; what does not have the form of its kind is passed over, as no API server gives it out."""
    objects: dict[str, list[_Object]] = {}
    served: dict[str, set[str]] = {}
    minor: int | None = None
    for one in found:
        version = one.get("serverVersion")
        if isinstance(version, Mapping):
            minor = _minor(version)
        try:
            if one.get("kind") == "APIResourceList":
                listed = msgspec.convert(one, _ResourceList)
                group = listed.group_version.rpartition("/")[0]
                served.setdefault(group, set()).update(resource.name for resource in listed.resources)
            else:
                converted = msgspec.convert(one, _Object)
                objects.setdefault(converted.kind, []).append(converted)
        except msgspec.ValidationError:
            continue
    return Surroundings(
        policies={one.metadata.name: one for one in objects.get(POLICY, ())},
        bindings={one.metadata.name: one for one in objects.get(BINDING, ())},
        leases={one.place: one for one in objects.get("Lease", ())},
        pods={one.place: one for one in objects.get("Pod", ())},
        secrets=tuple(objects.get("Secret", ())),
        served=served,
        minor=minor,
    )


def examine_fences(around: Surroundings, fences: Sequence[Fence]) -> Iterator[Report]:
    """A report for each fence of the policy file, and for each object that is left over from an earlier one."""
    if not around.has_fences:
        return
    wanted = {object_name(fence): fence for fence in fences}
    for name, fence in wanted.items():
        yield Report(name, "", tuple(_about(fence, around)), is_fence=True)
    for name in sorted({*around.policies, *around.bindings} - set(wanted)):
        diagnoses = list(_alone(name, around))
        if fences and any(one.is_ours for one in _pair(name, around)):
            diagnoses.append(_left_over(name))
        if any(one.is_ours for one in _pair(name, around)):
            yield Report(name, "", tuple(diagnoses), is_fence=True)


def _about(fence: Fence, around: Surroundings) -> Iterator[Diagnosis]:
    name = object_name(fence)
    for manifest in manifests(fence):
        there = (around.policies if manifest["kind"] == POLICY else around.bindings).get(name)
        if there is None:
            yield _not_applied(manifest["kind"], fence)
            continue
        if there.api_version != API_VERSION:
            yield _old_api(there)
        difference = _difference(manifest["spec"], there.spec or {})
        if difference:
            yield _drift(f"{manifest['kind']} {difference}", fence)
    if around.minor is not None and around.minor < OLDEST_MINOR:
        yield _old_server(around.minor)
    yield from _about_the_lease(fence, around)
    yield from _about_tokens(fence, around)
    yield from _about_resources(fence, around)


def _about_the_lease(fence: Fence, around: Surroundings) -> Iterator[Diagnosis]:
    if not around.leases:
        return
    lease = around.leases.get((fence.namespace, fence.lease))
    if lease is None:
        refuses = fence.mode == "deny" and fence.missing_lease == "deny"
        effect = "every write of its writers is refused." if refuses else "the fence holds nobody back."
        yield Diagnosis(
            "fence-lease-missing",
            f"lease {fence.lease_text}",
            f"no lease has this name: {effect}",
            "correct `lease` in the policy file, or start the operator, which creates its lease.",
        )
        return
    holder = (lease.spec or {}).get("holderIdentity")
    if not isinstance(holder, str) or not holder:
        return
    pods = [one for one in around.pods.values() if _is_pod_of(one, fence, holder)]
    known = any(namespace == fence.writers[0][0] for namespace, _ in around.pods)
    if not pods and (known or not _has_form(fence, holder)):
        yield Diagnosis(
            "fence-holder-unmatched",
            f"lease {fence.lease_text}, holderIdentity: {holder}",
            "no template of the fence fits this holder with any pod, so the leader itself is refused.",
            "write `holder` as the operator builds its identity, or let the operator use its pod's name (POD_NAME).",
        )
    for pod in pods:
        account = (pod.metadata.namespace, str((pod.spec or {}).get("serviceAccountName") or "default"))
        if account not in fence.writers:
            yield Diagnosis(
                "fence-writer-elsewhere",
                f"pod {'/'.join(pod.place)}, serviceAccountName: {account[1]}",
                "this pod holds the lease, and its service account is not a writer of the fence: nothing of it is held"
                " back.",
                f"add {'/'.join(account)} to `writers`.",
            )


def _about_tokens(fence: Fence, around: Surroundings) -> Iterator[Diagnosis]:
    for secret in around.secrets:
        account = (secret.metadata.annotations or {}).get("kubernetes.io/service-account.name", "")
        if (
            secret.type == "kubernetes.io/service-account-token"
            and (secret.metadata.namespace, account) in fence.writers
        ):
            yield Diagnosis(
                "fence-token-without-pod",
                f"Secret {'/'.join(secret.place)}",
                "its token names no pod: whoever writes with it is refused while the lease is held, the holder too.",
                "use the token that the kubelet mounts into pods, and delete the Secret.",
            )


def _about_resources(fence: Fence, around: Surroundings) -> Iterator[Diagnosis]:
    for one in fence.resources:
        if one.group in around.served and one.path not in around.served[one.group]:
            yield Diagnosis(
                "fence-resource-not-served",
                f"resources: {one}",
                "the API server serves no such resource, so the fence never sees it.",
                "correct the name in the policy file; kubectl api-resources lists them.",
            )


def _alone(name: str, around: Surroundings) -> Iterator[Diagnosis]:
    """What an object of ours shows without a policy file."""
    policy, binding = around.policies.get(name), around.bindings.get(name)
    if not any(one.is_ours for one in _pair(name, around)):
        return
    if policy is None or binding is None:
        yield Diagnosis(
            "fence-incomplete",
            f"{POLICY if binding else BINDING} {name}",
            "it is not there, and its counterpart alone holds nobody back.",
            "apply what `lease-webhook export fence` prints, or delete the counterpart.",
        )
        return
    actions = (binding.spec or {}).get("validationActions")
    denies = isinstance(actions, list) and "Deny" in actions
    if denies and (policy.spec or {}).get("failurePolicy") == "Ignore":
        yield Diagnosis(
            "fence-fails-open",
            f"{POLICY} spec.failurePolicy: Ignore",
            "where the expressions cannot be evaluated, an old leader writes.",
            "set failurePolicy: Fail.",
        )


def _pair(name: str, around: Surroundings) -> list[_Object]:
    return [one for one in (around.policies.get(name), around.bindings.get(name)) if one]


def _not_applied(kind: str, fence: Fence) -> Diagnosis:
    return Diagnosis(
        "fence-not-applied",
        f"{kind} {object_name(fence)}",
        "the policy file has this fence and the cluster has not: nobody is held back.",
        _EXPORT.format(name=fence.name),
    )


def _left_over(name: str) -> Diagnosis:
    return Diagnosis(
        "fence-left-over",
        f"{POLICY} {name}",
        "lease-webhook made it, and the policy file has it no more: its writers are still held back.",
        f"kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy {name}",
    )


def _drift(place: str, fence: Fence) -> Diagnosis:
    return Diagnosis(
        "fence-drift",
        place,
        "the cluster holds another fence than the policy file.",
        _EXPORT.format(name=fence.name),
    )


def _old_api(there: _Object) -> Diagnosis:
    return Diagnosis(
        "fence-api-old",
        f"{there.kind} apiVersion: {there.api_version}",
        "before v1 the API may be switched off, and fields are missing.",
        f"use {API_VERSION}, which every API server since 1.{OLDEST_MINOR} serves.",
    )


def _old_server(minor: int) -> Diagnosis:
    return Diagnosis(
        "fence-server-too-old",
        f"serverVersion: 1.{minor}",
        "ValidatingAdmissionPolicy is not generally available there, and tokens may not name their node.",
        f"upgrade to 1.{OLDEST_MINOR} or newer before you rely on a fence.",
    )


def _is_pod_of(pod: _Object, fence: Fence, holder: str) -> bool:
    spec = pod.spec or {}
    names = {"pod": pod.metadata.name, "node": str(spec.get("nodeName") or "")}
    in_place = pod.metadata.namespace == fence.writers[0][0]
    return in_place and any(one.fits(names[one.claim], holder) for one in fence.holders)


def _has_form(fence: Fence, holder: str) -> bool:
    """Whether some pod's or node's name would make a template fit."""
    return any(
        re.fullmatch(
            f"{re.escape(one.before)}{_NAME}{re.escape(one.after)}{'.*' if one.open else ''}", holder, re.DOTALL
        )
        for one in fence.holders
    )


def _minor(version: Mapping[str, object]) -> int | None:
    digits = re.match(r"\d{1,4}", str(version.get("minor")))
    return int(digits[0]) if digits else None


def _difference(wanted: object, there: object, path: str = "spec") -> str:
    """The first place at which two values differ, with the value found there; "" where they do not."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        for key in sorted({*wanted, *there}):
            if found := _difference(wanted.get(key), there.get(key), f"{path}.{key}"):
                return found
        return ""
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        for number, (one, other) in enumerate(zip(wanted, there, strict=True)):
            if found := _difference(one, other, f"{path}[{number}]"):
                return found
        return ""
    return "" if wanted == there else f"{path}: {there}"
