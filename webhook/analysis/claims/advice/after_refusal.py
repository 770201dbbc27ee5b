"""Advice about writes that an API server refused, and about who asked for them."""

import re
from typing import Final

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.advice.on_writers import (
    advise_in_terminated_namespace,
    advise_on_writer,
    describe_revocation,
)
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    WEBHOOKS,
    find_namespace_of_writer,
    find_pod_of_writer,
    make_command_for_lease,
    make_command_for_managers,
    make_command_for_node,
    make_command_for_quota,
    make_command_for_rights,
    make_options_to_act_as,
)
from webhook.analysis.claims.diagnosis import ReplacedAccount
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.evidence.writers.foreign_writes import find_foreign_write
from webhook.analysis.claims.words import describe_writer, format_clock, format_name, join_with_and
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.audit_log.refusal import UNAUTHENTICATED, Refusal, RefusedBy
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import NODE_USER
from webhook.text.commands import make_kubectl_prefix, quote_for_shell, quote_name
from webhook.text.quoting import quote

_POLICIES: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"
_FREE: Final = frozenset({LeaseState.EXPIRED, LeaseState.RELEASED, LeaseState.NEVER_HELD})
_VERBS_TO_LEAD: Final = ("get", "list", "watch", "create", "update", "patch")
_VERBS_TO_WRITE: Final = frozenset({"create", "update", "patch"})
_QUOTA: Final = re.compile(r" is forbidden: exceeded quota: ([a-z0-9.-]{1,253}),")
"""`exceeded quota` of kubernetes `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`."""
_FORBIDDEN: Final = 403
_IMPERSONATE: Final = "impersonate"


def advise_after_refusal(history: LeaseHistory, refusal: Refusal, now: int) -> Advice:
    """Return what to do about refused writes; `now` is in microseconds since 1970."""
    who = _name_refused(history, refusal)
    held = history.find_tenure_at(refusal.at)
    # An API server that chose the holder took the lease from no one.
    taker = held.processes.doubtful_taker if held and not held.is_chosen else None
    if held and taker and not taker.is_same(refusal.writer) and refusal.by is RefusedBy.POLICY:
        return advise_on_writer(
            f"{describe_writer(taker)} wrote {format_name(held.holder)} into the lease.", history, taker
        )
    refuses = "refused" if has_renewed_since_refusals(history, refusal) else "refuses"
    if refusal.by is RefusedBy.WEBHOOK:
        return Advice(f"See why webhook {format_name(refusal.name)} {refuses} the writes of {who}:", WEBHOOKS)
    if refusal.by is RefusedBy.CREDENTIALS and history.namespace == NODE_LEASES:
        sentence = (
            "The API server accepted no credentials with these requests, and it is not known who sent them. "
            "To see the node of the lease:"
        )
        return Advice(sentence, make_command_for_node(history.name))
    if refusal.by is RefusedBy.CREDENTIALS:
        return _advise_on_unaccepted_credentials(history, refusal)
    if refusal.by is RefusedBy.POLICY:
        what = "a release, which leaves no holder," if refusal.is_release else "the writes"
        return Advice(f"See why the policy {refuses} {what} of {who}:", _POLICIES)
    if refusal.by is RefusedBy.FIELDS:
        return _advise_on_owned_fields(history, refusal, who, now=now)
    if refusal.is_in_terminated_namespace:
        return _advise_on_terminated_namespace(history, refusal)
    if quota := find_quota(refusal.message):
        sentence = f"A ResourceQuota of the namespace left no room for the write of {who}:"
        return Advice(sentence, make_command_for_quota(history.namespace, quota))
    if refusal.by is RefusedBy.OTHER and refusal.code != _FORBIDDEN:
        return _advise_on_malformed_writes(history, refusal, who)
    return _advise_on_forbidden_writes(history, refusal, now)


def has_renewed_since_refusals(history: LeaseHistory, refusal: Refusal) -> bool:
    """Return whether the process whose write was refused has renewed the lease as its holder since its last refusal.

    A release that is refused is followed by renewals, or by none, whether or not the next release will be.
    """
    own = [one for one in history.requests.refusals if one.is_denied and one.writer.is_same(refusal.writer)]
    last = max((one.at for one in own), default=refusal.at)
    renewed = (one.last_renewal for one in history.tenures if refusal.writer.is_same(one.processes.own))
    return not refusal.is_release and (max(renewed, default=0) > last or _is_over_for_another(history, refusal))


def _is_over_for_another(history: LeaseHistory, refusal: Refusal) -> bool:
    """Return whether another one that was refused alike, with the same words, took the lease after the last refusal."""
    alike = [one for one in history.requests.refusals if (one.by, one.name) == (refusal.by, refusal.name)]
    if not refusal.name or any(one.message != refusal.message for one in alike):
        return False
    last = max(one.at for one in alike)
    takers = [one.processes.own for one in history.tenures if one.since > last]
    return any(one.writer.is_same(taker) for one in alike for taker in takers)


def find_quota(message: str) -> str:
    """Return the ResourceQuota that left no room for an object, as an answer says; "" if it does not."""
    found = _QUOTA.search(message)
    return found[1] if found else ""


def _advise_on_forbidden_writes(history: LeaseHistory, refusal: Refusal, now: int) -> Advice:
    """Return what to do about writes that an authorizer refused, or else admission."""
    if refusal.by is RefusedBy.OTHER and (refusal.lacks_rights or refusal.was_authorized):
        return _advise_on_admission(history, refusal)
    is_anonymous = refusal.is_anonymous and refusal.by is RefusedBy.RIGHTS
    if is_anonymous:
        return _advise_on_anonymous_requests(history, refusal)
    return _advise_on_missing_rights(history, refusal, now)


def _advise_on_terminated_namespace(history: LeaseHistory, refusal: Refusal) -> Advice:
    """Return what to do about creations in a namespace that was being deleted, and may be there again."""
    if history.is_deleted or history.find_tenure_at(refusal.at) is history.latest_tenure:
        return advise_in_terminated_namespace(history)
    sentence = "The namespace was being deleted then, and nothing could be created in it. To see whether it exists now:"
    return Advice(sentence, f"kubectl get namespace {quote_name(history.namespace)}")


def _advise_on_owned_fields(history: LeaseHistory, refusal: Refusal, who: str, *, now: int) -> Advice:
    """Return what to do about a server-side apply of fields that another manager owns.

    While a holder is live, that refusal is what keeps the lease from others. With force, only a process of the
    holder's account is to apply: to any other one the lease does not belong.
    """
    status, tenure = history.find_status(now), history.latest_tenure
    own = tenure.processes.own if tenure else None
    if own is None or status is None:
        sentence = f"Another field manager owns what {who} applies."
    elif own.user != refusal.writer.user or refusal.writer.impersonator:
        sentence = f"Let {who} leave out the spec, which the electors write."
    elif status.state in _FREE:
        sentence = (
            f"Once no one leads, let {who} apply with force, or delete the lease; any replica will create it again."
        )
    elif own.is_same(refusal.writer):
        sentence = f"Another field manager owns what {who}, the holder, applies."
    else:
        sentence = (
            f"Do not let {who} apply with force while {format_name(status.holder)} may lead: two leaders would "
            "result. Once no one leads, delete the lease; any replica will create it again."
        )
    return Advice(f"{sentence} To see who owns its fields:", make_command_for_managers(history))


def _advise_on_malformed_writes(history: LeaseHistory, refusal: Refusal, who: str) -> Advice:
    """Return what to do about writes that are refused whoever makes them: the client decides what it writes."""
    if _find_refused_pods(history, refusal):
        place = find_namespace_of_writer(history.namespace, refusal.writer)
        pods = f"{make_kubectl_prefix(place)} get pods,replicasets -o wide"
        return Advice(f"The API server refused what {who} wrote; compare images with the holder's:", pods)
    return Advice(
        f"The API server refused what {who} wrote. To see the lease:", f"{make_command_for_lease(history)} -o yaml"
    )


def _advise_on_anonymous_requests(history: LeaseHistory, refusal: Refusal) -> Advice:
    """Return where to look for who sent requests without credentials: to grant anonymous users a right is no cure."""
    sentence = (
        "These requests carried no credentials. Find out why the program that sent them has none, for example because "
        "its pod gets no token (automountServiceAccountToken: false); grant no rights to anonymous users."
    )
    return _advise_to_find_pod(sentence, history, get_address(refusal.source))


def _advise_to_find_pod(sentence: str, history: LeaseHistory, address: str) -> Advice:
    if not address:
        return Advice(f"{sentence} To see the pods:", f"{make_kubectl_prefix(history.namespace)} get pods")
    known = (
        who for source, found in history.requests.sources.items() if get_address(source) == address for who in found
    )
    if len({one.pod for one in known if one.pod}) > 1:
        # It is that of a node, or of a proxy, or was given to another pod.
        pods = f"{make_kubectl_prefix(history.namespace)} get pods -o wide"
        return Advice(f"{sentence} Several pods had the address. To see them, and their nodes:", pods)
    selector = quote_for_shell(f"status.podIP={address}")
    return Advice(f"{sentence} To see which pod has the address:", f"kubectl get pods -A --field-selector {selector}")


def _advise_on_unaccepted_credentials(history: LeaseHistory, refusal: Refusal) -> Advice:
    """Return where to look for who sent requests without accepted credentials, and which API server refused them.

    Why they were not accepted, such as a token that had expired, is not in a log.
    """
    path = history.requests.find_log_that_authenticates_none(UNAUTHENTICATED)
    names = [one.rpartition("/")[2] for one in history.requests.logs]
    name, address = path.rpartition("/")[2], get_address(refusal.source)
    sentence = (
        "The API server accepted no credentials with these requests, and the log does not show why, or who sent them."
    )
    if path and names.count(name) == 1:
        sentence = (
            f"Only the API server with the log {format_name(name)} did not accept the credentials; "
            "another one accepted some from the same addresses. Compare how both authenticate, "
            "such as their service account keys, issuers and audiences."
        )
    nodes = {one.bound_node for one in history.requests.sources.get(refusal.source, ())} - {""}
    if len(nodes) == 1:
        sentence += " Tokens that were accepted from there are bound to a Node. To see that:"
        return Advice(sentence, make_command_for_node(nodes.pop()))
    return _advise_to_find_pod(sentence, history, address)


def advise_on_replaced_account(history: LeaseHistory, refusal: Refusal, replaced: ReplacedAccount, now: int) -> Advice:
    """Return what to do once an account was replaced: pods that were created since have other tokens."""
    sentence = f"{replaced.describe(now)}."
    if any(one.last_renewal > refusal.at for one in history.tenures):
        return Advice(f"{sentence} Change a ServiceAccount in place, or restart its pods at once.")
    pods = f"{make_kubectl_prefix(replaced.deletion.namespace)} get pods"
    return Advice(f"{sentence} Restart its pods, which get other tokens then. To see them:", pods)


def _name_refused(history: LeaseHistory, refusal: Refusal) -> str:
    """Name whose writes were refused: the refused pods, unless the holder's pod is among them."""
    pods = _find_refused_pods(history, refusal)
    if not pods:
        return format_name(refusal.writer.name) or "the writer"
    return f"{'pod' if len(pods) == 1 else 'pods'} {join_names(pods)}"


def _find_refused_pods(history: LeaseHistory, refusal: Refusal) -> list[str]:
    """Return the pods that were refused alike, if a pod of the same account has renewed the lease since."""
    tenure = history.current_tenure
    own = tenure.processes.own if tenure and tenure.last_renewal > refusal.at else None
    if own is None or not own.pod or own.user != refusal.writer.user:
        return []
    alike = (one for one in history.requests.refusals if _is_alike(one, refusal))
    pods = list(dict.fromkeys(find_pod_of_writer(one.writer) for one in alike))
    return [] if "" in pods or own.pod in pods else pods


def _is_alike(refusal: Refusal, other: Refusal) -> bool:
    return refusal.is_denied_write and (refusal.by, refusal.code, refusal.writer.user) == (
        other.by,
        other.code,
        other.writer.user,
    )


def _advise_on_missing_rights(history: LeaseHistory, refusal: Refusal, now: int) -> Advice:
    """Return what to do about writes that an authorizer refused."""
    who = format_name(refusal.writer.name) or "the writer"
    if history.namespace == NODE_LEASES and refusal.writer.user.startswith(NODE_USER):
        return _advise_on_refused_node(history, refusal, who)
    if refusal.impersonated:
        sentence = f"{who} lacked the right to act as {format_name(refusal.impersonated)}."
        return advise_on_writer(sentence, history, _make_impersonated(refusal))
    verb = refusal.lacked_verb or "update"
    if verb == _IMPERSONATE:
        sentence = f"{who} lacked a right to act as another user, or as one of a group. To see its rights:"
        options = make_options_to_act_as(refusal.writer.user, refusal.writer.groups)
        return Advice(sentence, f"kubectl auth can-i --list -n {quote_name(history.namespace)}{options}")
    known = {one.processes.own.user for one in history.tenures if one.processes.own}
    if refusal.by is RefusedBy.RIGHTS and refusal.reason:
        reason = quote(refusal.reason)
        sentence = f"An authorizer refused the request, and gave the reason {reason}; ask whoever runs that authorizer."
        if _has_written_since(history, refusal):
            return Advice(f"{sentence} {who} has written the lease since then.")
        command = make_command_for_rights(verb, history.namespace, history.name, refusal.writer)
        return Advice(f"{sentence} To see whether {who} may {verb} the lease now:", command)
    if refusal.by is RefusedBy.RIGHTS and _has_written_since(history, refusal):
        return _advise_on_rights_that_are_back(history, refusal, verb)
    if refusal.by is not RefusedBy.RIGHTS:
        what = f"The API server refused what {who} wrote."
    elif known and refusal.writer.user not in known:
        what = f"{who} lacked the right, and did not hold the lease in this input."
    else:
        return _advise_on_rights_to_lead(history, refusal, verb, now)
    sentence = f"{what} To see whether {who} may {verb} the lease now:"
    return Advice(sentence, make_command_for_rights(verb, history.namespace, history.name, refusal.writer))


def _advise_on_rights_that_are_back(history: LeaseHistory, refusal: Refusal, verb: str) -> Advice:
    """Return how to see what took a right away and gave it back: the role that was missing, or the binding of now."""
    who = format_name(refusal.writer.name) or "the writer"
    if refusal.missing_roles:
        kind, name = refusal.missing_roles[0]
        sentence = (
            f"{who} has written the lease since; {kind} {format_name(name)} was missing when {who} was refused. "
            f"To see the {kind}, and which field managers wrote it:"
        )
        place = f"{make_kubectl_prefix(history.namespace) if kind == 'Role' else 'kubectl'} get {kind.lower()}"
        return Advice(sentence, f"{place} {quote_name(name)} -o yaml --show-managed-fields")
    found = history.requests.grants.find(refusal.writer.user, verb)
    if found is not None and found.at > refusal.at:
        binding = found.binding
        sentence = (
            f"{who} has written the lease since, as {binding.kind} {format_name(binding.name)} allows. "
            "To see that, and which field managers wrote it:"
        )
        place = make_kubectl_prefix(binding.namespace) if binding.namespace else "kubectl"
        get = f"{place} get {binding.kind.lower()} {quote_name(binding.name)}"
        return Advice(sentence, f"{get} -o yaml --show-managed-fields")
    sentence = (
        f"{who} has written the lease since. To see the roles and bindings of the namespace, and which field "
        "managers wrote them:"
    )
    get = f"{make_kubectl_prefix(history.namespace)} get roles,rolebindings"
    return Advice(sentence, f"{get} -o yaml --show-managed-fields")


def _advise_on_rights_to_lead(history: LeaseHistory, refusal: Refusal, verb: str, now: int) -> Advice:
    """Return which rights a user lacked to lead: who may not read the lease, and reads first, does not try to write."""
    who, user = format_name(refusal.writer.name) or "the writer", refusal.writer.user
    since = history.find_last_renewal_by(user)
    refused = [
        one
        for one in history.requests.refusals
        if one.at > since and one.by is RefusedBy.RIGHTS and one.writer.user == user and not one.writer.impersonator
    ]
    found = {one.lacked_verb for one in refused}
    verbs: list[str] = [one for one in _VERBS_TO_LEAD if one in found] or [verb]
    shown, (that, rights) = join_with_and(verbs), ("that", "right") if len(verbs) == 1 else ("those", "rights")
    foreign = find_foreign_write(history, user)
    lacked = f"{who} lacked the {rights} to {shown} the lease"
    if foreign is None:
        sentence = f"{lacked}; grant {that} {rights}, if it is meant to lead."
    else:
        did = f"{who} {foreign.did} at {format_clock(foreign.at, now)}, and lacked the {rights} to {shown} the lease"
        sentence = f"{did} later: leave it so unless it is meant to lead, and find out who uses that account."
        sentence += describe_revocation(history, refusal.writer)
    # Who reads first does not try to write what it may not read; to lead, it has to write.
    needed = verbs if _VERBS_TO_WRITE.intersection(verbs) else [*verbs, "update"]
    sentence += f" To see whether it may {join_with_and(needed)} the lease now:"
    commands = [make_command_for_rights(one, history.namespace, history.name, refusal.writer) for one in needed]
    return Advice(sentence, "; ".join(commands))


def _make_impersonated(refusal: Refusal) -> Writer:
    """Return as whom a refused request was made, and by whom."""
    return Writer(refusal.impersonated, impersonator=refusal.writer.user, impersonator_groups=refusal.writer.groups)


def _advise_on_admission(history: LeaseHistory, refusal: Refusal) -> Advice:
    """Return what to do about writes that authorizers allowed and admission refused: the right to write is there."""
    who, writer = format_name(refusal.writer.name) or "the writer", refusal.writer
    if refusal.lacks_deletion:
        sentence = (
            f"What {who} wrote set an ownerReference, for which it needs the right to delete the lease: grant that "
            f"right, or leave the ownerReference out. To see whether {who} may delete the lease now:"
        )
        return Advice(sentence, make_command_for_rights("delete", history.namespace, history.name, writer))
    if refusal.lacks_finalizers:
        sentence = (
            f"What {who} wrote set blockOwnerDeletion, for which it needs the right to update the owner's finalizers "
            "subresource: grant that right, or leave blockOwnerDeletion out. To see its rights:"
        )
        place = f"-n {quote_name(history.namespace)}{make_options_to_act_as(writer.user, writer.groups)}"
        return Advice(sentence, f"kubectl auth can-i --list {place}")
    sentence = (
        f"The right to write the lease was not lacking: admission control in the API server refused what {who} wrote. "
        "To see the lease:"
    )
    return Advice(sentence, f"{make_command_for_lease(history)} -o yaml")


def _advise_on_refused_node(history: LeaseHistory, refusal: Refusal, who: str) -> Advice:
    """Return which node to look at: a kubelet asks for the lease of no other node, but who has its credentials may."""
    node = refusal.writer.user.removeprefix(NODE_USER)
    if node == history.name or refusal.writer.impersonator:
        sentence = f"The API server refused the requests of {who}. To see the node:"
        return Advice(sentence, make_command_for_node(history.name))
    sentence = f"{who} asked for the lease of another node: its credentials may be in other hands. To see its own node:"
    return Advice(sentence, make_command_for_node(node))


def _has_written_since(history: LeaseHistory, refusal: Refusal) -> bool:
    """Return whether a user whose write was refused has renewed the lease since: it has the right again."""
    user, refusals = refusal.writer.user, history.requests.refusals
    denied = (one.at for one in refusals if one.is_denied_write and one.writer.user == user)
    return history.find_last_renewal_by(user) > max(denied, default=refusal.at)
