"""Writes of a log to what a lease's holders depend on, where what happened to the lease may have to do with them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_by_writer, format_name
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import TOO_MANY_REQUESTS, By, Refusal
from webhook.analysis.inputs.items import PodRequest, RelatedWrite, Writer
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE

_BEFORE: Final = 2 * MINUTE
"""How long before the first refusal, and after the last one, a write may have to do with them."""
_RIGHTS: Final = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet"})
_PODS: Final = {
    "Deployment": re.compile(r"[4-9bcdf]{1,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"),
    "StatefulSet": re.compile(r"0|[1-9][0-9]{0,9}"),
}
"""What follows the name of a workload in that of its pod: a hash and a random text, or a number.

Source: `SafeEncodeString` and `String` of apimachinery `pkg/util/rand`; of a hash, it encodes decimal digits.
"""
_ACCOUNT: Final = "ServiceAccount"
_POLICIES: Final = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
_WEBHOOKS: Final = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_PRIORITIES: Final = frozenset({"FlowSchema", "PriorityLevelConfiguration"})
_OVER_QUOTA: Final = "exceeded quota"
_WITHOUT_PARAMETERS: Final = "no params found"
"""Of a policy whose parameters, such as a ConfigMap, are gone."""


def describe_related_write(one: RelatedWrite) -> str:
    """`Deployment shop/checkout was scaled by kube-system/downscaler`, with the doubt whether it was."""
    place = f"{format_name(one.namespace)}/" if one.namespace else ""
    doubt = "" if one.is_sure else f", {UNLESS_DRY_RUN}"
    return f"{one.kind} {place}{format_name(one.name)} was {one.verb}{describe_by_writer(one.writer)}{doubt}"


def is_new(one: RelatedWrite, writes: Iterable[RelatedWrite]) -> bool:
    """Return whether a workload or its account was created, as each is before its leaders come.

    An account that was deleted before, as `writes` show, was lacking until it was created again.
    """
    if one.verb != "created" or one.kind not in {*_WORKLOADS, _ACCOUNT}:
        return False
    gone = ((past.kind, past.namespace, past.name) for past in writes if past.verb == "deleted" and past.at <= one.at)
    return one.kind != _ACCOUNT or (one.kind, one.namespace, one.name) not in gone


def find_related_writes(
    writes: Iterable[RelatedWrite], history: LeaseHistory, refused_pods: Sequence[PodRequest] = ()
) -> Iterator[RelatedWrite]:
    """Yield the writes that may have to do with what happened to a lease, in the order of time.

    `refused_pods` are creations of pods that were refused while no one held it.
    """
    processes = _list_processes(history)
    refusals = history.requests.refusals
    accounts = (UserInfo(one.user).service_account for one in processes)
    # Each lease of an input asks this, and most writes are of other namespaces.
    places = {"", history.namespace, *(one[0] for one in accounts if one)}
    near = (one for one in writes if one.namespace in places)
    for one in sorted(near, key=lambda one: (one.at, one.kind, one.name)):
        is_of_lease = _is_of_process(one, processes) or _may_explain(one, refusals, history.namespace)
        if is_of_lease or _may_explain_pods(one, refused_pods):
            yield one


def _list_processes(history: LeaseHistory) -> Sequence[Writer]:
    own = (one for tenure in history.tenures for one in (tenure.processes.own, *tenure.processes.others) if one)
    return list(dict.fromkeys((*own, *(one.writer.process for one in history.requests.refusals))))


def _is_of_process(one: RelatedWrite, processes: Iterable[Writer]) -> bool:
    """Return whether an object is the account, or the workload, of a process that held the lease or asked for it."""
    for process in processes:
        account = UserInfo(process.user).service_account
        if account is None or one.namespace != account[0] or process.impersonator:
            continue
        if one.kind == _ACCOUNT and one.name == account[1] and one.verb in {"deleted", "created"}:
            return True
        if one.kind in _WORKLOADS and _is_pod_of(process.pod, one):
            return True
    return False


def _is_pod_of(pod: str, workload: RelatedWrite) -> bool:
    """Return whether a pod is named as those of a workload are; one with a longer name may be of another workload."""
    rest = pod.removeprefix(f"{workload.name}-")
    return rest != pod and _PODS[workload.kind].fullmatch(rest) is not None


def _may_explain(one: RelatedWrite, refusals: Sequence[Refusal], namespace: str) -> bool:
    """Return whether an object grants or refuses what was refused at about that time."""
    if one.namespace not in {"", namespace}:
        return False
    is_like = _REFUSALS_OF.get(one.kind)
    times = [refusal.at for refusal in refusals if is_like is not None and is_like(refusal)]
    # A right that is granted refuses nothing.
    before = 0 if one.kind in _RIGHTS and one.verb == "created" else _BEFORE
    return bool(times) and times[0] - before <= one.at <= times[-1] + _BEFORE


def _may_explain_pods(one: RelatedWrite, refused: Sequence[PodRequest]) -> bool:
    """Return whether an object refuses what pods were refused for at about that time."""
    words = _REFUSALS_OF_PODS.get(one.kind)
    times = [
        pod.at for pod in refused if words is not None and words in pod.message and one.namespace in {"", pod.namespace}
    ]
    return bool(times) and times[0] - _BEFORE <= one.at <= times[-1] + _BEFORE


def _is_by(*parts: By) -> Callable[[Refusal], bool]:
    return lambda refusal: refusal.by in parts and refusal.is_denied


_REFUSALS_OF: Final[dict[str, Callable[[Refusal], bool]]] = {
    **dict.fromkeys(_RIGHTS, _is_by(By.RIGHTS)),
    **dict.fromkeys(_POLICIES, _is_by(By.POLICY)),
    **dict.fromkeys(_WEBHOOKS, lambda refusal: refusal.by is By.WEBHOOK or bool(refusal.failed_webhook)),
    **dict.fromkeys(_PRIORITIES, lambda refusal: refusal.code == TOO_MANY_REQUESTS),
    "ResourceQuota": lambda refusal: _OVER_QUOTA in refusal.message,
    "Namespace": lambda refusal: refusal.is_denied,
    "ConfigMap": lambda refusal: _WITHOUT_PARAMETERS in refusal.message,
}
"""What each kind of object may have to do with."""
_REFUSALS_OF_PODS: Final = {**dict.fromkeys(_WEBHOOKS, "webhook "), "ResourceQuota": _OVER_QUOTA}
"""What the answer says to the creation of a pod that each kind of object has refused."""
