"""What to do next: one or two sentences, with the command."""

from collections.abc import Sequence
from typing import Final

from webhook.audit.command_words import filled, kubectl, word
from webhook.audit.finding import Finding
from webhook.explanation import commands
from webhook.explanation.cause import Blame, Cause
from webhook.explanation.explained import Explained
from webhook.explanation.next_step import Advice, next_step
from webhook.explanation.words import name
from webhook.history.lease_history import LeaseHistory
from webhook.history.standing import Standing, State
from webhook.history.tenure import Handover, Tenure
from webhook.reports.model import Severity

_LOST: Final = frozenset({"leader-lost", "renewal-late"})


def advice(
    history: LeaseHistory,
    standing: Standing | None,
    state: State,
    findings: Sequence[Finding],
    cause: Cause | None,
    *,
    has_pod: bool | None,
) -> Advice:
    """What a person on call should do about a lease."""
    where = kubectl(history.namespace)
    if history.is_deleted:
        sentence = "The lease was deleted; a program that still runs creates it again:"
        return Advice(sentence, f"{where} get lease {word(history.name)} --watch")
    if standing is None:
        sentence = "Only its writes were seen, not the lease:"
        return Advice(sentence, f"{where} get lease {word(history.name)} -o yaml --show-managed-fields")
    if state is State.FROZEN and standing.frozen:
        repair = filled(standing.frozen.repair, history.namespace, history.name)
        return Advice("Repair it, or no other replica can follow the holder:", repair)
    worst = findings[0] if findings and findings[0].severity is Severity.ERROR else None
    if worst is not None:
        return _of(worst)
    if state is State.EXPIRED:
        return _expired(history, standing, cause, has_pod=has_pod)
    if state in {State.RELEASED, State.NEVER_HELD}:
        asks = "" if history.readers.counts else "; if none runs, the lease stays free"
        return Advice(f"Any replica may take the lease at once{asks}:", f"{where} get pods")
    known = [one for one in findings if isinstance(one, Explained) and one.severity is Severity.WARNING]
    lost = [one for one in known if one.check in _LOST]
    if known:
        return _of((lost or known)[-1])
    if state is State.UNKNOWN:
        sentence = "The lease does not say how long it lasts, so its own client decides:"
        return Advice(sentence, commands.pod_of_holder(history.namespace, standing.holder))
    wrong = next((one for one in findings if one.severity is Severity.WARNING), None)
    if wrong is not None:
        return Advice(f"The lease is held and renewed, but: {wrong.message}.", wrong.repair)
    return _nothing(history.tenure)


def _nothing(tenure: Tenure | None) -> Advice:
    if tenure is not None and tenure.began is Handover.RELEASED:
        return Advice("Nothing: the last change of leader was an orderly handover, and the lease is held and renewed.")
    return Advice("Nothing: the lease is held and renewed.")


def _of(finding: Finding) -> Advice:
    if isinstance(finding, Explained):
        return Advice(finding.advice, finding.repair)
    return Advice(_sentence(finding.message), finding.repair)


def _expired(history: LeaseHistory, standing: Standing, cause: Cause | None, *, has_pod: bool | None) -> Advice:
    where, holder = kubectl(history.namespace), name(standing.holder)
    if cause is not None and cause.blame in {Blame.SERVER, Blame.NETWORK, Blame.REFUSED}:
        return next_step(cause, history, history.tenure or Tenure(standing.holder, 0, Handover.SEEN))
    if has_pod is False:
        sentence = f"The pod of {holder} is gone, and no other replica took the lease:"
        return Advice(sentence, f"{where} get pods,deployments")
    sentence = f"Find out whether {holder} still runs, and why no other replica takes over:"
    pods, pod = f"{where} get pods", commands.pod_of_holder(history.namespace, standing.holder)
    return Advice(sentence, pods if pod == pods else f"{pods}; {pod}")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
