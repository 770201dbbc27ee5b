"""Writes of a log to what a lease's holders depend on, where what happened to the lease may have to do with them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.change import GARBAGE_COLLECTOR, NODE_LEASES
from webhook.analysis.claims.evidence.pods.holder_pods import HolderPodDeletion
from webhook.analysis.claims.evidence.runs import split_runs
from webhook.analysis.claims.evidence.silent_holders.failing_requests import DEFINITION, FailingRun
from webhook.analysis.claims.evidence.unshown_durations import UnshownDuration
from webhook.analysis.claims.evidence.writers.foreign_writes import find_foreign_write
from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_by_writer, format_name
from webhook.analysis.history.audit_log.grants import Binding, Grant
from webhook.analysis.history.audit_log.latency import BY_WEBHOOKS
from webhook.analysis.history.audit_log.refusal import TOO_MANY_REQUESTS, Refusal, RefusedBy
from webhook.analysis.history.elections.refused_candidates import RefusedCandidate
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.bounds import NEVER
from webhook.analysis.inputs.items import PodRequest, RelatedWrite, Writer
from webhook.analysis.inputs.related_writes import DEBUGGED, REGISTERED, STATUS_WRITTEN, WORKLOADS
from webhook.cached_property import cached_property
from webhook.kubernetes.generated_names import GENERATED
from webhook.kubernetes.objects import OwnerReference, is_foreign_strategy
from webhook.kubernetes.request import TAINT_EVICTORS, UserInfo
from webhook.kubernetes.times import MINUTE, SECOND

_NEAR: Final = 2 * MINUTE
"""How long before the first of a run of refusals a write may have caused them, and after the last one ended them.

Refusals of one process that lie further apart are of different runs.
"""
_UNTIL_KNOWN: Final = 10 * SECOND
"""What was changed may take effect only after so long."""
_ROLES: Final = frozenset({"Role", "ClusterRole"})
_RIGHTS: Final = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
_BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})
_PODS: Final = {
    "Deployment": re.compile(rf"(?:[4-9bcdf]{{1,10}}|{GENERATED}{{8,10}})-{GENERATED}{{5}}"),
    "StatefulSet": re.compile(r"0|[1-9][0-9]{0,9}"),
}
"""What follows the name of a workload in that of its pod: a hash and a random text, or a number.

Source: `SafeEncodeString` and `String` of apimachinery `pkg/util/rand`; of a hash, it encodes decimal digits. Another
controller may use the whole alphabet; the name of another workload is rarely so long without a vowel.
"""
_WORKLOAD: Final = re.compile(rf"(?:-{GENERATED}{{1,10}}-{GENERATED}{{5}}|-[0-9]{{1,10}})$")
"""What a Deployment or a StatefulSet adds to its name in that of its pod."""
_DURATION: Final = "leaseDurationSeconds"
_ACCOUNT: Final = "ServiceAccount"
_NODE: Final = "Node"
_SETTINGS: Final = "ConfigMap"
_UNTIL_READ: Final = MINUTE
"""For how long a process may take to read its settings again that were changed in a ConfigMap."""
_REMEDIES: Final = frozenset({"Role", "RoleBinding", "ResourceQuota"})
"""What people write by hand to end refusals, of those that are of a namespace."""
_POLICIES: Final = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
_WEBHOOKS: Final = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_MUTATING: Final = frozenset(
    {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"}
)
"""Kinds whose objects have other values stored than are asked for."""
_NETWORK: Final = "NetworkPolicy"
"""What may cut off the pods of its namespace, by being there or by what it allows no longer."""
_UNTIL_CUT_OFF: Final = 15 * SECOND
"""How long after the last renewal by a pod a policy may have been written that cut it off: most renew more often."""
_PRIORITIES: Final = frozenset({"FlowSchema", "PriorityLevelConfiguration"})
_GRANTING: Final = frozenset({*_RIGHTS, DEFINITION, "ConfigMap", "Namespace", "Secret"})
"""Kinds whose objects refuse nothing by being there: to create one causes no refusal, and to delete it ends none."""
_REFUSING: Final = frozenset({*_POLICIES, *_WEBHOOKS, "ResourceQuota"})
"""Kinds whose objects grant nothing by being there."""
_TERMINATING: Final = "because it is being terminated"
"""What refuses a creation in a namespace that is being deleted."""
_OVER_QUOTA: Final = "exceeded quota"
_PRIORITY: Final = "PriorityClass"
_WITHOUT_PRIORITY: Final = "no PriorityClass with name"
"""The answer to the creation of a pod whose class is gone. Source: kubernetes `plugin/pkg/admission/priority`."""
_EVICTS: Final = ":NoExecute"
_MAX_DELAY_OF_TAINT: Final = SECOND
"""The node controller follows the write of a Node by someone else within this time."""
_Run = tuple[int | None, int | None]
"""When the first and the last refusal of a run came; None if that one may be forgotten."""
_Silence = tuple[int, int, Tenure | None]
"""From when to when a holder, if it is known which one, did not renew."""
_WITHOUT_PARAMETERS: Final = "no params found"
"""What a policy refuses with if its parameters, such as a ConfigMap, are gone."""


_OF_RIGHTS: Final = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
"""Kinds that are applied again and again as they are, and of which a change explains what is refused."""


def describe_related_write(write: RelatedWrite, times: str = "") -> str:
    """`Deployment shop/checkout was scaled by kube-system/downscaler`, with the doubt whether it was."""
    place = f"{format_name(write.namespace)}/" if write.namespace else ""
    doubt = "" if write.is_surely_not_dry_run else f", {UNLESS_DRY_RUN}"
    what = f"{write.kind} {place}{format_name(write.name)} was {write.verb}{times}"
    is_unheard = write.verb == STATUS_WRITTEN and write.writer.is_node_controller
    why = ", as when its kubelet is not heard" if is_unheard else ""
    why = ", as when it taints a node that is not ready" if _is_taint(write) and not write.change else why
    why = ", as when its kubelet starts" if write.verb == REGISTERED else why
    change = f", {write.change}" if write.change else ""
    # Programs apply what is stored already again and again; a person means to change something.
    is_by_program = UserInfo(write.writer.user).service_account is not None
    is_doubtful = write.may_change_nothing and write.kind in _OF_RIGHTS and is_by_program and not times
    change += ", unless its patch changed nothing" if is_doubtful else ""
    return f"{what}{describe_by_writer(write.writer)}{why}{change}{doubt}"


def _is_taint(write: RelatedWrite) -> bool:
    """Return whether a write of the node controller may have tainted a node: its other writes are of the status."""
    return write.kind == _NODE and write.writer.is_node_controller and write.verb != STATUS_WRITTEN


def _is_said_by_another(write: RelatedWrite, writes: Iterable[RelatedWrite]) -> bool:
    """Return whether a node may have been tainted because it was not heard, or is new, as another write says.

    Or since someone else has just updated it: the node controller sets a taint after a cordon, and takes it away again.
    A taint that has its pods deleted says more than that.
    """
    if not _is_taint(write) or _EVICTS in write.change:
        return False
    same = [one for one in writes if _is_of_same(one, write)]
    explaining = [one.at for one in same if one.verb in {STATUS_WRITTEN, "created"}]
    followed = [one.at for one in same if one.verb == "updated" and not _is_taint(one)]
    return any(0 <= write.at - at <= _NEAR for at in explaining) or any(
        0 <= write.at - at <= _MAX_DELAY_OF_TAINT for at in followed
    )


def is_new(write: RelatedWrite, writes: Iterable[RelatedWrite]) -> bool:
    """Return whether a workload or its account was created, as each is before its leaders come.

    An account that was deleted before, as `writes` show, was lacking until it was created again.
    """
    if write.verb != "created" or write.kind not in {*WORKLOADS, _ACCOUNT}:
        return False
    gone = ((past.kind, past.namespace, past.name) for past in writes if past.verb == "deleted" and past.at <= write.at)
    return write.kind != _ACCOUNT or (write.kind, write.namespace, write.name) not in gone


def find_related_writes(
    writes: Iterable[RelatedWrite],
    history: LeaseHistory,
    unshown: UnshownDuration | None,
    *,
    refused_pods: Sequence[PodRequest],
    failing: Sequence[FailingRun],
    deletions: Sequence[HolderPodDeletion] = (),
    candidates: Sequence[RefusedCandidate] = (),
) -> Iterator[RelatedWrite]:
    """Yield the writes that may have to do with what happened to a lease, in the order of time.

    `unshown` is the takeover that casts doubt on how long the lease lasts, in a log of requests.
    `refused_pods` are creations of pods that were refused while no one held it, `failing` are requests of its holders,
    `deletions` are those of their pods, and `candidates` are LeaseCandidates for it that were refused.
    """
    processes = _list_processes(history)
    accounts = (UserInfo(one.user).service_account for one in processes)
    # Each lease of an input asks this, and most writes are of other namespaces.
    places = {"", history.namespace, *(one[0] for one in accounts if one)}
    near = sorted((one for one in writes if one.namespace in places), key=lambda one: (one.at, one.kind, one.name))
    scene = _Scene(history, near, processes, refused_pods, failing, unshown, deletions, candidates)
    missing = _find_missing(near, history)
    for write in near:
        # If the rights were of a role that was deleted, as the answers say, no other role matters.
        is_other_role = bool(missing) and write.kind in _ROLES and (write.kind, write.name) not in missing
        if not is_other_role and any(is_related(write, scene) for is_related in _RELATIONS):
            yield replace(write, is_surely_not_dry_run=True) if _is_known_gone(write, history) else write


def _find_missing(writes: Iterable[RelatedWrite], history: LeaseHistory) -> Collection[tuple[str, str]]:
    """Return the roles that were missing when requests were refused, of those that were deleted.

    None if a user was refused for lack of a right and no answer to it names such a role: it may have lost another one.
    """
    deleted = {(one.kind, one.name) for one in writes if one.verb == "deleted"}
    by_user: dict[str, set[tuple[str, str]]] = {}
    for refusal in history.requests.refusals:
        if refusal.lacks_rights:
            by_user.setdefault(refusal.writer.user, set()).update(deleted.intersection(refusal.missing_roles))
    return set().union(*by_user.values()) if all(by_user.values()) else set()


def _is_known_gone(write: RelatedWrite, history: LeaseHistory) -> bool:
    """Return whether requests for a lease show that a deletion was no dry run: they lacked the object soon after it."""
    if write.verb != "deleted":
        return False
    role = write.kind, write.name
    if any(_is_among(write, one.deletion.owners) for one in _list_collected(history, write.at)):
        return True
    refused = (one for one in history.requests.refusals if write.at < one.received <= write.at + _NEAR)
    return any(role in one.missing_roles for one in refused) or has_granted(write, history)


def has_granted(write: RelatedWrite, history: LeaseHistory) -> bool:
    """Return whether a binding allowed before this write what was refused to the same user after it, and never since.

    An API server names the binding in its log. What another one does not know yet, it allows for a while.
    """
    if write.kind not in _BINDINGS or write.verb not in {"deleted", "updated"}:
        return False
    binding = Binding(write.kind, write.namespace, write.name)
    refused = (one for one in history.requests.refusals if one.by is RefusedBy.RIGHTS and one.received > write.at)
    lacked = {(one.writer.user, one.lacked_verb) for one in refused if one.received - write.at <= _NEAR}
    grants = (history.requests.grants.find(*one) for one in lacked)
    return any(one is not None and one.binding == binding and one.at <= write.at + _UNTIL_KNOWN for one in grants)


def _is_of_same(write: RelatedWrite, other: RelatedWrite) -> bool:
    return (write.kind, write.namespace, write.name) == (other.kind, other.namespace, other.name)


class _Scene(Struct, frozen=True, dict=True):
    """A lease, the writes that may have to do with it, and what they may explain."""

    history: LeaseHistory
    near: Sequence[RelatedWrite]
    """Writes of the whole cluster, and of the namespaces of the lease and of its processes."""
    processes: Sequence[Writer]
    """The processes that held the lease or asked for it in vain."""
    refused_pods: Sequence[PodRequest]
    failing: Sequence[FailingRun]
    unshown: UnshownDuration | None
    deletions: Sequence[HolderPodDeletion] = ()
    candidates: Sequence[RefusedCandidate] = ()

    @cached_property
    def runs(self) -> Mapping[str, Sequence[_Run]]:
        """The runs of refusals that a kind of object may have to do with, by kind."""
        kinds = {one.kind for one in self.near if one.namespace in {"", self.history.namespace}} & _REFUSALS_OF.keys()
        return {kind: [*_find_runs(self.history, _REFUSALS_OF[kind]), *self._find_runs(kind)] for kind in kinds}

    def _find_runs(self, kind: str) -> Iterator[_Run]:
        """Yield the runs of refused LeaseCandidates that a kind of object may have to do with."""
        is_like = _REFUSALS_OF[kind]
        yield from ((one.first, one.last.at) for one in self.candidates if is_like(one.last))

    @cached_property
    def foreign_grants(self) -> Sequence[Grant]:
        """The grants of users who removed, or replaced, a holder that was another user's."""
        history = self.history
        writers = (who for one in history.tenures for who in (one.processes.taken_by, one.removal.writer) if who)
        users = sorted({one.user for one in writers})
        grants = (history.requests.grants.find_to_write(one) for one in users if find_foreign_write(history, one))
        return [one for one in grants if one is not None]

    @cached_property
    def silences(self) -> Sequence[_Silence]:
        """The times in which the lease was not renewed."""
        return list(_find_silences(self.history))

    def is_here(self, write: RelatedWrite) -> bool:
        """Return whether a write is of the whole cluster, or of the namespace of the lease, and not of an account."""
        return write.kind != _ACCOUNT and write.namespace in {"", self.history.namespace}


def _may_explain_refusals(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether an object may have refused what was asked for the lease, or granted it."""
    return scene.is_here(write) and _may_explain(write, scene.runs.get(write.kind, ()))


def _has_let_stranger_write(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write is about the binding, or its role, by which a stranger could write the lease."""
    place = write.kind, write.namespace, write.name
    return write.kind in _RIGHTS and any(
        place in ((one.binding.kind, one.binding.namespace, one.binding.name), _place_role(one))
        for one in scene.foreign_grants
    )


def _place_role(grant: Grant) -> tuple[str, str, str]:
    kind, name = grant.role
    return kind, grant.binding.namespace if kind == "Role" else "", name


def _may_help(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write may have been meant to end refusals that did not end."""
    return find_end_of_refusals(write, scene.history) > 0


def _may_explain_edit(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a ConfigMap that is named after a workload was written just before its pod changed a duration.

    What its own account writes is its work.
    """
    history, processes = scene.history, scene.processes
    if write.kind != _SETTINGS or write.namespace != history.namespace or write.verb == "deleted":
        return False
    changes = [one for one in history.edits if _DURATION in one.text and 0 <= one.at - write.at <= _UNTIL_READ]
    own = [one for one in processes if one.pod and any(one.is_same(edit.writer) for edit in changes)]
    is_other = all(one.user != write.writer.user for one in processes)
    return is_other and any(write.name.startswith(f"{_WORKLOAD.sub('', one.pod)}-") for one in own)


def is_of_node(write: RelatedWrite, history: LeaseHistory) -> bool:
    """Return whether a write is about the Node of a node's lease, which goes with it."""
    return write.kind == _NODE and history.namespace == NODE_LEASES and write.name == history.name


def _is_of_deleted_owner(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether an owner of the lease was deleted just before the lease was: Kubernetes then deletes that, too."""
    collected = _list_collected(scene.history, write.at) if write.verb == "deleted" else ()
    return write.namespace == scene.history.namespace and any(
        _is_among(write, one.deletion.owners) for one in collected
    )


def _may_explain_rewriting(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether what changes writes was written just before the first that was stored otherwise than asked.

    A log of requests does not show which one that was; then it may be any of the log.
    """
    if write.kind not in _MUTATING:
        return False
    doubt = scene.unshown
    first = [one.earliest for one in scene.history.requests.rewritten.found.values()]
    is_near = any(one - _NEAR <= write.at <= one for one in first) and write.verb != "deleted"
    return is_near or (doubt is not None and write.at < doubt.after.since)


def _list_collected(history: LeaseHistory, since: int) -> Iterator[Tenure]:
    """Yield the holders whose lease was deleted within the next minutes as no owner of it existed."""
    for tenure in history.tenures:
        who, until = tenure.deletion.by, tenure.until
        is_collected = who is not None and who.user == GARBAGE_COLLECTOR
        if is_collected and until is not None and since <= until <= since + _NEAR:
            yield tenure


def _is_among(write: RelatedWrite, owners: Iterable[OwnerReference]) -> bool:
    return any((one.kind, one.name) == (write.kind, write.name) for one in owners)


def _may_explain_by_node(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write is about the node of a holder, and no other one says why it was made.

    A Node that is created after it was deleted is listed with that deletion.
    """
    if write.kind != _NODE:
        return False
    if write.verb == "created":
        return any(
            one.verb == "deleted"
            and _is_of_same(one, write)
            and one.at < write.at
            and _is_of_node_of_holder(one, scene)
            for one in scene.near
        )
    return _is_of_node_of_holder(write, scene) and not _is_said_by_another(write, scene.near)


def _is_of_node_of_holder(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write is about the node of a holder, and was made about when that was silent, or was deleted."""
    history = scene.history
    is_own = is_of_node(write, history)
    # Of most leases, most nodes are others.
    if not is_own and all(one.processes.node != write.name for one in history.tenures):
        return False
    if is_own and write.verb == "deleted":
        return True
    ends = ((one.last_renewal, one.until, one) for one in history.tenures if one.is_deleted and one.until is not None)
    return any(
        start - _NEAR <= write.at <= end and (is_own or (tenure is not None and tenure.processes.node == write.name))
        for start, end, tenure in (*scene.silences, *ends)
    )


def _may_explain_taint(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write may have tainted the node of a holder's pod that was deleted for that, or ended it.

    Until the next holder came, any node counts: the taint of another one may have kept its pods from running there.
    """
    # The controller that evicts taints nodes as well: which taint that was is known if the log shows it.
    is_unknown = write.writer.user in TAINT_EVICTORS and _EVICTS not in write.change
    if write.kind != _NODE or is_unknown or write.verb == "deleted":
        return False
    is_about_it = write.verb == STATUS_WRITTEN or write.writer.user in TAINT_EVICTORS
    for one in scene.deletions:
        if is_about_it and write.name != one.tenure.processes.node:
            continue
        until = min((after.since for after in scene.history.tenures if after.since > one.deletion.at), default=NEVER)
        is_cause = write.name == one.tenure.processes.node and 0 <= one.deletion.at - write.at <= _UNTIL_KNOWN
        is_near = bool(write.change) and write.at - one.deletion.at >= -_NEAR and write.at <= until
        if one.is_by_taint and (is_cause or is_near):
            return True
    return False


def _list_processes(history: LeaseHistory) -> Sequence[Writer]:
    own = (one for tenure in history.tenures for one in (tenure.processes.own, *tenure.processes.others) if one)
    return list(dict.fromkeys((*own, *(one.writer.process for one in history.requests.refusals))))


def _is_of_process(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether an object is the account, or the workload, of a process that held the lease or asked for it."""
    for process in scene.processes:
        account = UserInfo(process.user).service_account
        if account is None or write.namespace != account[0] or process.impersonator:
            continue
        if write.kind == _ACCOUNT and write.name == account[1] and write.verb in {"deleted", "created"}:
            return True
        if write.kind in WORKLOADS and _is_pod_of(process.pod, write):
            return True
    return False


def _may_have_taken_token(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write changed the account of a process when requests without credentials began or ended.

    An account says whether its pods get a token.
    """
    accounts = (UserInfo(one.user).service_account for one in scene.processes)
    is_account = write.kind == _ACCOUNT and (write.namespace, write.name) in accounts
    return is_account and _may_explain(write, scene.runs.get(_ACCOUNT, ()))


def _is_pod_of(pod: str, workload: RelatedWrite) -> bool:
    """Return whether a pod is named as those of a workload are; one with a longer name may be of another workload."""
    rest = pod.removeprefix(f"{workload.name}-")
    return rest != pod and _PODS[workload.kind].fullmatch(rest) is not None


def _find_runs(history: LeaseHistory, is_like: Callable[[Refusal], bool]) -> Iterator[_Run]:
    """Yield when the first and the last one of each run of refusals came; None if that one may be forgotten."""
    for who, first, last in _find_known_runs(history, is_like):
        has_lost = partial(history.requests.has_forgotten_of, who)
        yield None if has_lost(first - _NEAR, first) else first, None if has_lost(last, last + _NEAR) else last


def _find_known_runs(history: LeaseHistory, is_like: Callable[[Refusal], bool]) -> Iterator[tuple[Writer, int, int]]:
    """Yield whose each run of refusals is that are remembered, and when the first and the last one of it came.

    Where some of the same process are forgotten, nothing shows that it ended.
    """
    times: dict[Writer, list[int]] = {}
    for refusal in filter(is_like, history.requests.refusals):
        times.setdefault(refusal.writer.process, []).append(refusal.at)
    for who, found in times.items():
        runs = [(run[0], run[-1]) for run in split_runs(found, apart=_NEAR, time=lambda at: at)]
        first, last = runs[0]
        for start, end in runs[1:]:
            if not history.requests.has_forgotten_of(who, last, start):
                yield who, first, last
                first = start
            last = end
        yield who, first, last


def _may_explain(write: RelatedWrite, runs: Iterable[_Run]) -> bool:
    """Return whether an object may grant or refuse what was refused, and was written when that began or ended.

    What was written in the middle of a run neither caused the refusals nor ended them.
    """
    may_cause = write.kind not in {"created": _GRANTING, "deleted": _REFUSING}.get(write.verb, ())
    may_end = write.kind not in {"created": _REFUSING, "deleted": _GRANTING}.get(write.verb, ())
    return any(
        (may_cause and first is not None and first - _NEAR <= write.at <= first)
        or (may_end and last is not None and last <= write.at <= last + _NEAR)
        for first, last in runs
    )


def find_end_of_refusals(write: RelatedWrite, history: LeaseHistory) -> int:
    """Return when the last refusal came that a write may have been meant to end, and did not; 0 if there is none.

    It is of the namespace of the lease: what is written of a whole cluster all the time need not be about these.
    """
    may_help = write.kind not in {"created": _REFUSING, "deleted": _GRANTING}.get(write.verb, ())
    if write.kind not in _REMEDIES or not may_help or write.namespace != history.namespace:
        return 0
    is_like = _REFUSALS_OF[write.kind]
    # Who renewed since was helped for a while, or by another write.
    runs = _find_known_runs(
        history, lambda one: is_like(one) and one.at > history.find_last_renewal_by(one.writer.user)
    )
    return max((last for _, first, last in runs if first < write.at < last - _UNTIL_KNOWN), default=0)


def is_after_last_failure(write: RelatedWrite, history: LeaseHistory) -> bool:
    """Return whether a webhook's configuration was written after the last failure to call one, before a renewal."""
    failed = max((one.at for one in history.requests.refusals if one.failed_webhook), default=0)
    is_renewed = any(one.last_renewal > write.at for one in history.tenures)
    return write.kind in _WEBHOOKS and 0 < failed <= write.at and is_renewed


def _may_explain_failures(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a write may have had a holder's other requests fail, or succeed again."""
    runs = [
        (None if one.is_cut else one.first, one.last)
        for one in scene.failing
        if (write.kind in _RIGHTS and one.failure.lacks_rights)
        or (write.kind == DEFINITION and one.failure.code == 404 and write.name == one.failure.resource)
    ]
    return scene.is_here(write) and _may_explain(write, runs)


def _may_explain_silence(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a policy was written when renewals ended, or just before they began again."""
    return write.kind == _NETWORK and any(
        (write.verb != "deleted" and start - _NEAR <= write.at <= start + _UNTIL_CUT_OFF)
        or (write.verb != "created" and end - _NEAR <= write.at <= end)
        for start, end, _ in scene.silences
    )


def _find_silences(history: LeaseHistory) -> Iterator[_Silence]:
    """Yield from when to when a lease was not renewed for so long that most clients give up, or that it expired."""
    late = (*history.late_silences, *history.renewals.early_expiries)
    yield from ((one.start, one.end, history.find_tenure_of_silence(one)) for one in late)
    for before, after in pairwise(history.tenures):
        if after.began is Handover.EXPIRED or after.beginning.may_have_been_expired:
            yield before.last_of_identity, after.since, before
    holder = history.current_tenure
    if holder is not None and holder.duration and history.moment - holder.last_renewal > holder.duration * SECOND:
        yield holder.last_renewal, history.moment, holder


def _may_explain_pods(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether an object refuses what pods were refused for at about that time."""
    words = _REFUSALS_OF_PODS.get(write.kind)
    times = [
        pod.at
        for pod in scene.refused_pods
        if words is not None
        and words in pod.message
        and write.namespace in {"", pod.namespace}
        and (write.kind != _PRIORITY or f"{_WITHOUT_PRIORITY} {write.name} was found" in pod.message)
    ]
    return bool(times) and times[0] - _NEAR <= write.at <= times[-1] + _NEAR


def _is_by(*parts: RefusedBy) -> Callable[[Refusal], bool]:
    return lambda refusal: refusal.by in parts and refusal.is_denied


_REFUSALS_OF: Final[dict[str, Callable[[Refusal], bool]]] = {
    **dict.fromkeys(_RIGHTS, lambda refusal: refusal.lacks_rights and refusal.is_denied),
    **dict.fromkeys(_POLICIES, _is_by(RefusedBy.POLICY)),
    **dict.fromkeys(
        _WEBHOOKS,
        lambda refusal: (
            refusal.by is RefusedBy.WEBHOOK or bool(refusal.failed_webhook) or refusal.slow_part in BY_WEBHOOKS
        ),
    ),
    **dict.fromkeys(_PRIORITIES, lambda refusal: refusal.code == TOO_MANY_REQUESTS),
    "ResourceQuota": lambda refusal: _OVER_QUOTA in refusal.message,
    "Namespace": lambda refusal: (
        refusal.by in {RefusedBy.WEBHOOK, RefusedBy.POLICY}
        or bool(refusal.failed_webhook)
        or _TERMINATING in refusal.message
    ),
    "ConfigMap": lambda refusal: _WITHOUT_PARAMETERS in refusal.message,
    _ACCOUNT: lambda refusal: refusal.is_anonymous and refusal.is_denied,
    "Secret": _is_by(RefusedBy.CREDENTIALS),
}
"""What each kind of object may have to do with; labels of a namespace choose webhooks and policies."""
_REFUSALS_OF_PODS: Final = {
    **dict.fromkeys(_WEBHOOKS, "webhook "),
    "ResourceQuota": _OVER_QUOTA,
    "Namespace": "violates PodSecurity",
    _PRIORITY: _WITHOUT_PRIORITY,
}
"""What the answer says to the creation of a pod that each kind of object has refused."""


def _is_debugged_holder(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a container was put into the pod of a holder while it held the lease: a debugger stops it."""
    return write.kind == DEBUGGED and any(
        one.since <= write.at <= (one.until or write.at) and _is_its_pod(write, one.processes.own)
        for one in scene.history.tenures
    )


def _may_be_of_chooser(write: RelatedWrite, scene: _Scene) -> bool:
    """Return whether a workload's pods read a lease whose holder no API server chooses: one may be what does."""
    lease = scene.history.lease
    if write.kind not in WORKLOADS or lease is None or not is_foreign_strategy(lease.spec.strategy):
        return False
    readers = ((UserInfo(user).service_account, pods) for user, pods in scene.history.requests.accounts.items())
    return any(
        account is not None and account[0] == write.namespace and any(_is_pod_of(pod, write) for pod in pods)
        for account, pods in readers
    )


def _is_its_pod(write: RelatedWrite, own: Writer | None) -> bool:
    account = UserInfo(own.user).service_account if own is not None else None
    return own is not None and account is not None and (write.namespace, write.name) == (account[0], own.pod)


_RELATIONS: Final[tuple[Callable[[RelatedWrite, _Scene], bool], ...]] = (
    _is_of_process,
    _is_debugged_holder,
    _may_be_of_chooser,
    _may_explain_refusals,
    _has_let_stranger_write,
    _may_help,
    _may_have_taken_token,
    _may_explain_silence,
    _may_explain_failures,
    _may_explain_edit,
    _may_explain_by_node,
    _may_explain_taint,
    _may_explain_pods,
    _is_of_deleted_owner,
    _may_explain_rewriting,
)
"""How a write may have to do with a lease."""
