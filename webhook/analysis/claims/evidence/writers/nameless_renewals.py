"""Sentences about a lease that is renewed while it names no holder: who renews it, since when, and what to check."""

from collections.abc import Sequence
from typing import Final

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_pod_of_writer, name_pods
from webhook.analysis.claims.evidence.contenders.askers import describe_process, join_names
from webhook.analysis.claims.words import format_age, format_clock, format_count, format_name, join_with_and
from webhook.analysis.history.holders.nameless_renewals import NamelessRenewals
from webhook.analysis.history.lease import LeaseHistory
from webhook.text.commands import make_kubectl_prefix

_MAX_NAMED: Final = 3


def find_nameless_renewals(history: LeaseHistory) -> NamelessRenewals | None:
    """Return the renewals of a lease since it names no holder; None if it names one, or they may be one release."""
    found = history.nameless
    return found if found is not None and found.is_run and not history.is_deleted else None


def list_nameless_renewals(history: LeaseHistory) -> Sequence[NamelessRenewals]:
    """Return all runs of such renewals, oldest first."""
    latest = [history.nameless] if history.nameless is not None and history.nameless.is_run else []
    return [*history.past_nameless, *latest]


def describe_in_headline(found: NamelessRenewals, now: int, duration: int | None) -> str:
    """Say that a lease is, or was, renewed without a holder: also that it is free, once its renewals have ended."""
    since, least = format_clock(found.since, now), "at least " if _may_be_more(found) else ""
    number = f"{least}{format_count(len(found.writers), 'process', 'processes')}" if found.writers else ""
    if found.is_ongoing(now, duration):
        have = "has" if number == "1 process" else "have"
        renewed = f"{number} {have} renewed it" if number else "it has been renewed"
        last = format_age(found.last, now)
        return f"it names no holder, and {renewed} since {since} without naming one, the last time {last}"
    by = f" by {number}" if number else ""
    return f"no one holds it: it was renewed without a holder{by} from {since} to {format_clock(found.last, now)}"


def describe_nameless_renewals(found: NamelessRenewals, now: int) -> str:
    """Say how often it was renewed without a holder, until when and by whom, as a clause."""
    until = format_clock(found.last, now)
    renewed = f"from then on it was renewed without a holder, {format_count(found.count, 'time')} until {until}"
    if found.writers:
        least = f"at least {len(found.writers)} processes, such as " if found.are_writers_cut else ""
        named = found.writers[-_MAX_NAMED:] if found.are_writers_cut else found.writers
        return f"{renewed}, by {least}{join_names([describe_process(one) for one in named])}"
    under = f", under field manager {join_with_and([*map(format_name, found.managers)])}" if found.managers else ""
    return f"{renewed}{under}; the input does not show by which processes"


def advise_on_nameless_renewals(history: LeaseHistory, found: NamelessRenewals) -> Advice:
    """Return what to check while a lease is renewed without a holder."""
    sentence = (
        "It names no holder, and is renewed all the same. A process whose own name is empty may take that for its own, "
        "and lead: several may at once. Check what gives its pods their identity, such as a variable or an option:"
    )
    pods = [one for one in found.writers if one.pod]
    if not pods:
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods -o yaml")
    return Advice(sentence, make_command_for_pod_of_writer(history.namespace, pods[-1]), name_pods(pods[-1]))


def _may_be_more(found: NamelessRenewals) -> bool:
    """Return whether more processes than are known may have renewed it: one user without a pod may be several."""
    return found.are_writers_cut or bool(found.managers) or not all(one.pod or one.uid for one in found.writers)
