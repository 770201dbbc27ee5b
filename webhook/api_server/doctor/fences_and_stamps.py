"""Compares the fences and the stamps in a cluster with the policy file, as far as the documents show them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.admission.policy.fences import Fence
from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules.change import NODE_LEASES
from webhook.admission.rules.stamps import NAMES, Stamps, find_stamp, name_annotations
from webhook.api_server.doctor.checks import Report, list_some
from webhook.api_server.doctor.documents import (
    ELSE_REPLACE,
    ClusterObject,
    Documents,
    MatchRule,
    find_difference,
    report_danger,
)
from webhook.api_server.fence.objects import (
    ACTIONS,
    BINDING,
    CLOCK,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    Manifest,
    make_fence_manifests,
    name_policy,
)
from webhook.api_server.install.objects import make_stamp_objects
from webhook.api_server.rule_policies import GUARD, RULE_POLICIES, make_stamp_policies
from webhook.findings import ReportFinding
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.times import SECOND, parse, parse_stamp
from webhook.text.commands import quote_name
from webhook.text.quoting import quote

_EXPORT: Final = "lease-webhook export fence {} --name {}{} | kubectl apply --server-side --force-conflicts -f -"
_NAME_OF_POD: Final = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
STAMP_LABEL: Final = f"{NAMES}stamp"
_USER_LABEL: Final = f"{NAMES}stamp-writer"
_METADATA_LABEL: Final = f"{NAMES}stamp-metadata"
_ADOPTERS: Final = f"{NAMES}stamp-adopters"
_NO_ROOM: Final = (
    "the lease has more than 200 annotations, 49,152 characters of them, 1,000 labels, 200 finalizers (while it is"
    " being deleted, 4,000 of 65,536 characters) or 100 owners"
)
_APPLY: Final = "apply the component `stamp` with the suffix of the policy file: docs/stamp.md."
_CONSTRAINTS: Final[Mapping[str, Any]] = {"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {}}
"""Defaults that an API server adds to matchConstraints."""


def examine_fences(documents: Documents, fences: Sequence[Fence], file: str) -> Iterator[Report]:
    """Yield a report for each fence of the policy `file`, and for each object of a fence that it no longer has.

    A fence may be stricter than the file: it was exported with --mode.
    """
    if not documents.shows_policies:
        return
    wanted = set[str]()
    for fence in fences:
        name = name_policy(fence)
        bound = documents.find_by_name(BINDING).get(name, ClusterObject(BINDING)).spec.get("validationActions")
        there = replace(fence, mode=next(mode for mode in ACTIONS if ACTIONS[mode] == bound or mode == fence.mode))
        mode = "" if there == fence else f" --mode {there.mode}"
        note = mode and f"{name} is stricter than {file}: set `mode: {there.mode}` of the fence there"
        export = _EXPORT.format(file, quote_name(fence.name), mode)
        yield Report(name, "", tuple(_check_fence(there, documents, export)), is_fence=True, note=note)
        wanted |= {manifest["metadata"]["name"] for manifest in make_fence_manifests(fence)}
    note = "" if fences else "fences were not compared with a policy file that has fences: --policy names it"
    # Another binding of a fence is a finding about bindings.
    made = (one for one in documents.fence_objects if one.is_of_a_fence and _is_named_as_bound(one))
    for name in sorted({one.metadata.name for one in made} - wanted):
        findings = tuple(_check_unlisted(name, documents, is_left_over=bool(fences)))
        yield Report(name, "", findings, is_fence=True, note=note)
        note = ""


def _check_fence(fence: Fence, documents: Documents, export: str) -> Iterator[ReportFinding]:
    for manifest in (one for one in make_fence_manifests(fence) if one["kind"] not in documents.unread):
        name = manifest["metadata"]["name"]
        applied = documents.find_by_name(manifest["kind"]).get(name)
        if applied is None:
            yield report_danger(
                "fence-not-applied",
                f"{manifest['kind']} {name}",
                "the policy file has this fence, but this object was not found: writes are not denied as it says.",
                export,
            )
        elif changed := find_difference(manifest["spec"], applied.spec):
            yield report_danger(
                "fence-drift",
                f"{manifest['kind']} {changed}",
                "the fence in the cluster differs from the one in the policy file.",
                f"{export}; {ELSE_REPLACE}",
            )
    yield from _check_lease(fence, documents)
    yield from _check_tokens(fence, documents)


def _check_lease(fence: Fence, documents: Documents) -> Iterator[ReportFinding]:
    leases = {one.place: one for one in documents.find_all("Lease")}
    if not leases:
        return
    lease = leases.get(fence.lease_text)
    if lease is None:
        effect = "every write of its writers is denied." if fence.denies_if_lease_is_missing else "no write is denied."
        yield report_danger(
            "fence-lease-missing",
            f"lease {fence.lease_text}",
            f"no lease has this name: {effect}",
            "correct `lease` in the policy file, or start the operator, which creates its lease.",
        )
        return
    holder = lease.spec.get("holderIdentity")
    if not isinstance(holder, str) or not holder:
        return
    if fence.is_by_stamp:
        yield from _check_stamp(fence, lease, documents)
        return
    known = [one for one in documents.find_all("Pod") if one.metadata.namespace == fence.writers[0][0]]
    pods = [one for one in known if _is_holder(one, fence, holder)]
    if not pods and (known or not _has_form(fence, holder)):
        yield report_danger(
            "fence-holder-unmatched",
            f"lease {fence.lease_text}, holderIdentity: {holder}",
            "this holder matches no template of the fence for any pod, so writes of the leader itself are denied.",
            "write `holder` as the operator builds its identity, or let the operator use its pod's name (POD_NAME).",
        )
    for pod in pods:
        account = (pod.metadata.namespace, str(pod.spec.get("serviceAccountName") or "default"))
        if account not in fence.writers:
            yield report_danger(
                "fence-writer-elsewhere",
                f"pod {pod.place}, serviceAccountName: {account[1]}",
                "this pod holds the lease, and its service account is not a writer of the fence: its writes are not"
                " fenced.",
                f"add {'/'.join(account)} to `writers`.",
            )


def _check_stamp(fence: Fence, lease: ClusterObject, documents: Documents) -> Iterator[ReportFinding]:
    stamp = (lease.metadata.annotations or {}).get(f"lease-webhook/writer-{fence.suffix}", "")
    user = stamp.partition(" ")[2]
    if not stamp:
        yield report_danger(
            "fence-lease-unstamped",
            f"lease {fence.lease_text}",
            "the API server has stamped no writer of this lease, so writes of the leader itself are denied.",
            _advise_unstamped(documents, lease),
        )
    elif user not in fence.usernames:
        yield report_danger(
            "fence-writer-elsewhere",
            f"lease {fence.lease_text}, written by {user}",
            "this user holds the lease, and it is not a writer of the fence: its writes are not fenced.",
            "add its service account to `writers`.",
        )


def _advise_unstamped(documents: Documents, lease: ClusterObject) -> str:
    """Say how a held lease gets a stamp: where the namespace is labeled, its next renewal has one if there is room."""
    place, name = lease.metadata.namespace, quote_name(lease.metadata.name)
    namespace = documents.find_by_name("Namespace").get(place)
    if namespace is None or not _is_labeled(place, namespace):
        return (
            "apply deploy/stamp and label the namespace: docs/stamp.md#install. The next renewal is stamped after"
            f" {STAMP_LABEL}=required of Namespace {quote_name(place)}."
        )
    beyond = list(_list_beyond(lease))
    if not beyond:
        return f"the next renewal is stamped unless {_NO_ROOM}"
    patch = msgspec.json.encode({"metadata": dict.fromkeys(beyond)}).decode()
    return (
        f"no renewal is stamped while {_NO_ROOM}. Cut it: kubectl --namespace {quote_name(place)} patch lease {name}"
        f" --type merge --patch '{patch}'"
    )


def _list_beyond(lease: ClusterObject) -> Iterator[str]:
    """Yield the kinds of metadata that leave no room for stamps and may be removed.

    A lease that is being deleted would be gone without its finalizers.
    """
    metadata = lease.metadata
    annotations = metadata.annotations or {}
    if len(annotations) > 200 or sum(len(key) + len(text) for key, text in annotations.items()) > 49_152:
        yield "annotations"
    if len(metadata.labels or ()) > 1000:
        yield "labels"
    if len(metadata.finalizers or ()) > 200 and not metadata.deletion_timestamp:
        yield "finalizers"
    if len(metadata.owner_references or ()) > 100:
        yield "ownerReferences"


def _check_tokens(fence: Fence, documents: Documents) -> Iterator[ReportFinding]:
    for secret in documents.find_all("Secret"):
        account = (secret.metadata.annotations or {}).get("kubernetes.io/service-account.name", "")
        if (
            secret.type == "kubernetes.io/service-account-token"
            and (secret.metadata.namespace, account) in fence.writers
        ):
            yield report_danger(
                "fence-token-without-pod",
                f"Secret {secret.place}",
                "its token is not bound to a pod: writes with it are denied while the lease is held, even if the holder"
                " makes them.",
                "use the token that the kubelet mounts into pods, and delete the Secret.",
            )


def _check_unlisted(name: str, documents: Documents, *, is_left_over: bool) -> Iterator[ReportFinding]:
    """Check a policy and its binding by themselves: the policy file does not have them, or there is no file."""
    has_validating = any(name in documents.find_by_name(kind) for kind in (POLICY, BINDING))
    kind, kind_of_binding = (POLICY, BINDING) if has_validating else (MUTATING_POLICY, MUTATING_BINDING)
    policy, binding = documents.find_by_name(kind).get(name), documents.find_by_name(kind_of_binding).get(name)
    if policy is None or binding is None:
        yield report_danger(
            "fence-incomplete",
            f"{kind if binding else kind_of_binding} {name}",
            "it does not exist, and its counterpart alone denies nothing.",
            "apply what `lease-webhook export fence` prints, or delete the counterpart.",
        )
    # The clock fails open: an error in it may not cost an honest leader a write.
    elif _is_denying(binding) and policy.spec.get("failurePolicy") == "Ignore" and not name.endswith(CLOCK):
        yield report_danger(
            "fence-fails-open",
            f"{POLICY} spec.failurePolicy: Ignore",
            "if the expressions cannot be evaluated, writes of an old leader are admitted.",
            "set failurePolicy: Fail.",
        )
    if policy and binding and (narrowed := _describe_narrowing(policy, binding, documents)):
        yield report_danger(
            "fence-narrowed",
            f"{kind} {name}: {narrowed}",
            "writes of its writers that this leaves out are not fenced.",
            "apply what `lease-webhook export fence` prints; --policy compares the fence with its file.",
        )
    if is_left_over:
        yield report_danger(
            "fence-left-over",
            f"{kind} {name}",
            "lease-webhook made it, and the policy file no longer has it: writes of its writers are still fenced.",
            f"kubectl delete {kind_of_binding.lower()},{kind.lower()} {quote_name(name)}",
        )


def _describe_narrowing(policy: ClusterObject, binding: ClusterObject, documents: Documents) -> str:
    """Return by what a fence matches fewer writes than any that is exported; "" if it does not."""
    constraints = policy.spec.get("matchConstraints")
    narrowing = ("objectSelector", "excludeResourceRules")
    found = [one for one in narrowing if isinstance(constraints, dict) and constraints.get(one)]
    found += [] if _is_named_as_bound(binding) else ["policyName of its binding"]
    found += ["matchResources of its binding"] if binding.spec.get("matchResources") else []
    found += [] if documents.selects_any(policy.namespace_selector) else ["namespaceSelector, which selects none"]
    return ", ".join(found)


def _is_named_as_bound(one: ClusterObject) -> bool:
    """True if a binding has the name of the policy that it binds, and for a policy."""
    return bool(one.spec.get("policyName", one.metadata.name) == one.metadata.name)


def _is_denying(binding: ClusterObject) -> bool:
    actions = binding.spec.get("validationActions")
    return isinstance(actions, list) and "Deny" in actions


def _is_holder(pod: ClusterObject, fence: Fence, holder: str) -> bool:
    names = {"pod": pod.metadata.name, "node": str(pod.spec.get("nodeName") or "")}
    return any(one.fits(names[one.claim], holder) for one in fence.holders)


def _has_form(fence: Fence, holder: str) -> bool:
    """True if the name of some pod or node would make a template match."""
    return any(
        re.fullmatch(
            f"{re.escape(one.before)}{_NAME_OF_POD}{re.escape(one.after)}{'.*' if one.is_open else ''}",
            holder,
            re.DOTALL,
        )
        for one in fence.holders
    )


def examine_stamps(documents: Documents, policy: Policy, now: int) -> Iterator[Report]:
    """Yield a report about the namespaces that the policy file lists under `stamps`, and about those that are labeled.

    Nothing is said of policies unless the documents have one, of any kind; `now` is in microseconds since 1970.
    """
    stamps = policy.stamps
    findings = [*_check_namespaces(documents, stamps)]
    if stamps and documents.shows_policies:
        alternatives = _export_without_webhook(documents, policy, now)
        for suffix in sorted({one.suffix for one in stamps.values()}):
            findings += _check_stamp_policies(documents, suffix, alternatives)
        findings += _find_other_mutations(documents)
    findings += [
        found for lease in documents.find_all("Lease") for found in _check_stamps_of_lease(lease, documents, stamps)
    ]
    if stamps or findings:
        yield Report("stamps", "", tuple(findings))
    notes = (*_note_openings(documents, stamps, now), *_note_owners(documents, stamps))
    yield from (Report("stamps", "", (), note=note) for note in notes)


def _note_openings(documents: Documents, stamps: Mapping[str, Stamps], now: int) -> Iterator[str]:
    """Yield what lets others than the stamped writer write held leases, by intention or until the next renewal."""
    for name, namespace in sorted(documents.find_by_name("Namespace").items()):
        if name not in stamps or not _is_labeled(name, namespace):
            continue
        if adopters := (namespace.metadata.annotations or {}).get(_ADOPTERS):
            yield (
                f"Namespace {name}: {_ADOPTERS} lets these users change labels, annotations, finalizers and owners of"
                f" leases that others hold: {quote(adopters)}"
            )
        if (namespace.metadata.labels or {}).get(_METADATA_LABEL) == "open":
            yield (
                f"Namespace {name}: {_METADATA_LABEL}=open lets whoever may write its leases change labels, annotations"
                " and finalizers of those that others hold, and enough of that ends a leader"
            )
        leases = (one for one in documents.find_all("Lease") if one.metadata.namespace == name)
        for lease in leases:
            if _is_live(lease, now) and not (lease.metadata.annotations or {}).get(
                f"{NAMES}writer-{stamps[name].suffix}"
            ):
                yield (
                    f"Lease {lease.place} is held and has no stamp, so whoever may write it can take it;"
                    f" {_advise_unstamped(documents, lease)}"
                )


def _note_owners(documents: Documents, stamps: Mapping[str, Stamps]) -> Iterator[str]:
    """Yield which leases an elector may have to be allowed to delete: the flags of an API server are not known."""
    for name in find_labeled_namespaces(documents):
        leases = (one for one in documents.find_all("Lease") if one.metadata.namespace == name and name in stamps)
        if owned := [lease.metadata.name for lease in leases if lease.metadata.owner_references]:
            yield (
                f"Namespace {name}: these leases have an owner, which ends with the tenure of their holder:"
                f" {list_some(owned)}. Where the admission plugin OwnerReferencesPermissionEnforcement is on, as on"
                " OpenShift, whoever takes or releases one needs the right to delete it:"
                " docs/stamp.md#owners-and-the-right-to-delete"
            )


def _is_live(lease: ClusterObject, now: int) -> bool:
    """True if a lease has a holder and has not expired by its holder's clock."""
    holder, duration, renewed = (
        lease.spec.get(name) for name in ("holderIdentity", "leaseDurationSeconds", "renewTime")
    )
    if not holder or not isinstance(duration, int) or not isinstance(renewed, str):
        return False
    try:
        return now < parse(renewed) + duration * SECOND
    except ValueError:
        return False


def find_labeled_namespaces(documents: Documents) -> list[str]:
    """Return the namespaces whose label says that writers are stamped there."""
    namespaces = sorted(documents.find_by_name("Namespace").items())
    return [name for name, namespace in namespaces if _is_labeled(name, namespace)]


def _is_labeled(name: str, namespace: ClusterObject) -> bool:
    return (namespace.metadata.labels or {}).get(STAMP_LABEL) == "required" and name != NODE_LEASES


def _export_without_webhook(documents: Documents, policy: Policy, now: int) -> dict[tuple[str, str], Manifest]:
    """Return the objects that are as good where the rules are policies too: their guard has the file's mode."""
    manifests: Sequence[Manifest] = ()
    if any(name.startswith(RULE_POLICIES) for name in documents.find_by_name(BINDING)):
        with suppress(PolicyError):  # of several suffixes none are made
            manifests = make_stamp_policies(policy, now)
    return {_find_key(one): one for one in manifests}


def _check_stamp_policies(
    documents: Documents, suffix: str, alternatives: Mapping[tuple[str, str], Manifest]
) -> Iterator[ReportFinding]:
    # The guard of deploy/stamp denies: it is not that of a file which has it warn, unless a webhook has that file.
    bound = alternatives[BINDING, GUARD]["spec"]["policyName"] if alternatives else GUARD
    is_shipped_good = documents.dedicated or bound == GUARD
    there = documents.find_by_name(BINDING).get(GUARD, ClusterObject(BINDING)).spec.get("policyName")
    is_denying = is_shipped_good and there == GUARD
    shipped = {_find_key(one): one for one in make_stamp_objects(suffix)}
    sources = (shipped, alternatives) if is_shipped_good else (alternatives,)
    for kind, name in (key for key in {**shipped, **alternatives} if key[0] not in documents.unread):
        applied = documents.find_by_name(kind).get(name)
        good = [one[kind, name]["spec"] for one in sources if (kind, name) in one]
        if applied is None:
            if (kind, name) not in shipped and (
                is_denying or alternatives[kind, name]["spec"].get("policyName") != GUARD
            ):
                continue  # no mode of the file needs it
            is_new = kind in (MUTATING_POLICY, MUTATING_BINDING)
            yield report_danger(
                "stamp-not-applied",
                f"{kind} {name}",
                "the policy file says that writers are stamped, but this object does not exist"
                f"{'; API servers older than 1.36 do not serve its kind' if is_new else ''}."
                " Without all of them the writers of live leases are not recorded, or not kept from each other.",
                _APPLY,
            )
        elif all(changes := [_describe_change(spec, applied) for spec in good]):
            yield report_danger(
                "stamp-drift",
                f"{kind} {name}: {changes[0]}",
                "it differs from what was verified with every kind of write: a client may be able to write the stamps,"
                " or an honest write may be refused.",
                f"{_APPLY[:-1]}; {ELSE_REPLACE}",
            )


def _find_key(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _describe_change(spec: Mapping[str, Any], applied: ClusterObject) -> str:
    return find_difference(_add_defaults(spec), _add_defaults(applied.spec))


def _add_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    constraints = spec.get("matchConstraints")
    return {**spec, "matchConstraints": {**_CONSTRAINTS, **constraints}} if isinstance(constraints, dict) else {**spec}


def _check_namespaces(documents: Documents, stamps: Mapping[str, Stamps]) -> Iterator[ReportFinding]:
    for name, namespace in sorted(documents.find_by_name("Namespace").items()):
        labels, listed = namespace.metadata.labels or {}, stamps.get(name)
        value = labels.get(STAMP_LABEL, "")
        place = f"Namespace {name}: {STAMP_LABEL}={value}"
        is_labeled = _is_labeled(name, namespace)
        if listed is None and is_labeled:
            yield report_danger(
                "stamp-namespace-not-listed",
                place,
                "the API server replaces managedFields there, and the webhook does not read the stamps: for its rules"
                " no renewal is recorded, so a steal is only a warning unless the guard refuses it.",
                "list the namespace under `stamps` in the policy file.",
            )
        elif listed is not None and not is_labeled:
            yield report_danger(
                "stamp-namespace-not-labeled",
                place,
                "the policy file says that writers are stamped there, and they are not: the rules read managedFields.",
                _advise_label(name, is_pending=value == "pending"),
            )
        elif listed is not None and listed.by_user != (labels.get(_USER_LABEL) == "user"):
            yield report_danger(
                "stamp-writer-differs",
                f"Namespace {name}: {_USER_LABEL}={labels.get(_USER_LABEL, '')}",
                "the policy file and the label disagree about whether all pods of a user are one writer, so the guard"
                " or the webhook refuses what the other allows.",
                f"{'add' if listed.by_user else 'remove'} the label {_USER_LABEL}=user, or change `writer` in the"
                " policy.",
            )


def _advise_label(namespace: str, *, is_pending: bool) -> str:
    """Say how to label a namespace that the policy file lists under `stamps`, or not to list it."""
    if namespace == NODE_LEASES:
        return "kube-node-lease is never stamped: remove it from `stamps`."
    next_label, then = ("required", "") if is_pending else ("pending", ", then =required")
    return (
        "remove it from `stamps`, or label it when none of its leases has a stamp:"
        f" kubectl label --overwrite namespace {quote_name(namespace)} {STAMP_LABEL}={next_label}{then}; docs/stamp.md"
    )


def _find_other_mutations(documents: Documents) -> Iterator[ReportFinding]:
    for policy in documents.find_all(MUTATING_POLICY):
        constraints = policy.spec.get("matchConstraints")
        try:
            rules = msgspec.convert((constraints or {}).get("resourceRules") or (), tuple[MatchRule, ...])
        except msgspec.ValidationError:
            continue  # the API server refuses it
        if policy.metadata.name != "lease-webhook-stamp" and any(rule.matches("leases") for rule in rules):
            yield report_danger(
                "stamp-may-be-changed",
                f"{MUTATING_POLICY} {policy.metadata.name}",
                "it may change a lease after it was stamped, and the stamps with it.",
                "leave the group coordination.k8s.io out of its matchConstraints.",
            )


def _check_stamps_of_lease(
    lease: ClusterObject, documents: Documents, stamps: Mapping[str, Stamps]
) -> Iterator[ReportFinding]:
    """Check that the stamps of a lease were written by the policies that are there."""
    here, listed = stamps.get(lease.metadata.namespace), lease.metadata.managed_fields
    if here is None or not listed:
        return
    entries = list_entries(msgspec.Raw(msgspec.json.encode(listed)))
    stamp = find_stamp(here, lease.metadata.annotations, entries)
    policy = documents.find_by_name(MUTATING_POLICY).get("lease-webhook-stamp")
    since = parse_stamp(policy.metadata.creation_timestamp) if policy else None
    place = f"Lease {lease.place}"
    names = name_annotations(here.suffix)
    annotated = [name for name in lease.metadata.annotations or {} if name in names]
    if (stamp is None and annotated) or (stamp and since and stamp.written and stamp.written < since):
        yield report_danger(
            "stamp-planted",
            f"{place}: {', '.join(quote(name) for name in annotated)}",
            "it was written before the policies that stamp were there, or while they were off, so any client may have"
            " written it.",
            "install the component `stamp` with a new suffix, and name that in the policy file.",
        )
