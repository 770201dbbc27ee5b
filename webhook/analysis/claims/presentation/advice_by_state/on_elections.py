"""Advice on how an election is held: as a lock, in a loop, or by a strategy that no API server knows."""

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.evidence.pods.holder_pods import find_evictor
from webhook.analysis.claims.evidence.pods.loops import find_loop
from webhook.analysis.claims.words import (
    describe_writer,
    format_bound,
    format_name,
)
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND
from webhook.text.commands import make_kubectl_prefix


def advise_on_lock(history: LeaseHistory, start: str) -> Advice:
    """Say that a lease is used as a lock, how often, and for how long each holder had it at most."""
    lengths = [one.until - one.since for one in history.tenures if one.until is not None]
    is_exact = all(one.is_exact and (one.ended is None or one.ended.is_exact) for one in history.tenures)
    longest = format_bound(max(lengths) + (0 if is_exact else SECOND))
    sentence = (
        f"{start} taken and given up again and again (at least {len(lengths)} times, each time held for {longest}), "
        "and not renewed: as a lock for single tasks, and not by a leader. If that is meant, no action is needed."
    )
    return Advice(sentence)


def advise_on_foreign_strategy(account: Account) -> Advice | None:
    """Return the advice to look for what chooses the holder; None if an API server does, or no one."""
    if not (strategy := account.election.foreign_strategy):
        return None
    sentence = f"No API server chooses by the strategy {format_name(strategy)}; check that its implementation runs:"
    return Advice(sentence, f"{make_kubectl_prefix(account.history.namespace)} get pods,leasecandidates")


def advise_on_loop(account: Account, start: str) -> Advice | None:
    """Return where to look for why a pod releases the lease again and again; None if none does."""
    loop = find_loop(account.history.tenures, account.now)
    if loop is None:
        return None
    if (who := find_evictor(account.pods.deletions, loop.tenures)) is not None:
        sentence = f"{start} Each release followed a request by {describe_writer(who)} to delete its pod:"
        return Advice(sentence, f"{make_kubectl_prefix(account.history.namespace)} get pods,events")
    sentence = f"{start} See why {loop.who} takes it and releases it again and again:"
    return loop.advise(sentence, account.history.namespace)
