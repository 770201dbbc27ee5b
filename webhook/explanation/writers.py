"""Who renews a lease: two processes under one identity, two applications on one lease, as findings."""

from collections.abc import Iterator
from typing import Final

from webhook.audit.command_words import kubectl, word
from webhook.explanation import commands
from webhook.explanation.explained import Explained, explained
from webhook.explanation.next_step import Advice
from webhook.explanation.words import name, writer
from webhook.history.lease_history import LeaseHistory
from webhook.history.standing import Standing
from webhook.history.tenure import Tenure
from webhook.reports.model import Severity

_SHOWN: Final = 4


def writers(history: LeaseHistory, standing: Standing | None) -> Iterator[Explained]:
    """Findings about several writers of one lease."""
    several = [one for one in history.tenures if one.has_several_writers and len(one.writers) > 1]
    if several:
        yield _shared_identity(history, several[-1])
    elif history.renewals.is_doubled and standing is not None and standing.holder:
        yield _doubled(history, standing.holder)
    yield from _applications(history, standing)


def _shared_identity(history: LeaseHistory, tenure: Tenure) -> Explained:
    who = " and ".join(writer(one) for one in tenure.writers[-3:])
    message = (
        f"one identity, {name(tenure.holder)}, is used by several processes that renew in turns: {who}; each believes "
        "that it leads"
    )
    sentence = (
        "Give every replica an identity of its own, such as the name of its pod, and restart them. To see the pods:"
    )
    pods = " ".join(word(one) for one in tenure.pods[-3:])
    where = kubectl(history.namespace)
    advice = Advice(sentence, f"{where} describe pods {pods}" if pods else f"{where} get pods")
    is_over = tenure is not history.tenure or tenure.until is not None
    return explained(history, "identity-shared", Severity.ERROR, message, advice, "shared-identity", is_over=is_over)


def _doubled(history: LeaseHistory, holder: str) -> Explained:
    intervals = list(history.renewals.latest)[-4:]
    shown = ", ".join(f"{one / 1_000_000:.1f}" for one in intervals)
    message = (
        f"{name(holder)} is renewed in two rhythms (the last intervals: {shown} s), as by two processes under one "
        "identity, each of which believes that it leads"
    )
    sentence = "A watch does not show who writes; the audit log of the API server does:"
    advice = Advice(sentence, commands.audit_log(history.namespace, history.name))
    return explained(history, "identity-shared", Severity.WARNING, message, advice, "shared-identity")


def _applications(history: LeaseHistory, standing: Standing | None) -> Iterator[Explained]:
    users = {one.name: one for tenure in history.tenures for one in tenure.writers}
    if users:
        if len(users) < 2 or any(user.startswith("system:") for user in users):
            return
        kind, names = "service accounts", sorted(users)
    else:
        managers = {tenure.manager for tenure in history.tenures if tenure.until is not None and tenure.manager}
        if history.tenure and history.tenure.until is None and standing and standing.manager:
            managers.add(standing.manager)
        if len(managers) < 2 or "kube-apiserver" in managers:
            return
        kind, names = "programs (by field manager)", sorted(managers)
    shown = ", ".join(name(one) for one in names[:_SHOWN])
    message = (
        f"several {kind} have held this lease: {shown}. If they are two applications, only one of them works at a time "
        "and the other one waits"
    )
    sentence = "If they are two applications, give each a lease name (election ID) of its own. To see what runs there:"
    advice = Advice(sentence, f"{kubectl(history.namespace)} get pods -o wide")
    yield explained(history, "lease-shared", Severity.WARNING, message, advice, "shared-lease")
