"""Times, lengths of time and names as people read them."""

import re
from collections.abc import Sequence
from typing import Final

from webhook.analysis.history.audit_log.deleted_pods import is_by_force
from webhook.analysis.history.holders.beginning import RequestsBefore
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.times import DAY, MINUTE, SECOND, format_length, format_time
from webhook.text.quoting import quote_within

_UNITS: Final = ((MINUTE, SECOND // 10), (60 * MINUTE, SECOND), (DAY, MINUTE))
"""The last unit that is shown, by lengths below which it is."""


UNLESS_DRY_RUN: Final = "unless that was a dry run, which the log does not show"
_LONG_GRACE: Final = 60
"""Seconds for which a process may go on after its pod was deleted; by default it has half of that."""
_PLAIN: Final = re.compile(r"[!#-\[\]-~]{1,78}")
"""Printable, without blanks, quotes and backslashes: nearly all names."""


def format_name(text: str) -> str:
    """Return a name that anyone may have chosen, quoted only if part of it would be invisible."""
    if _PLAIN.fullmatch(text):
        return text
    shown = quote_within(text, 80)
    plain = shown[1:-1]
    return plain if plain == text and text.split() == [text] else shown


def format_clock(at: int, now: int) -> str:
    """Return the time of day of an instant, with the date unless that is the date of `now`."""
    text = format_time(at)
    return text[11:] if at // DAY == now // DAY else text


def format_clocks(now: int, *instants: int) -> list[str]:
    """Return times of day, all with the date if not all of them are of the day of `now`."""
    is_today = all(at // DAY == now // DAY for at in instants)
    return [format_clock(at, now) if is_today else format_time(at) for at in instants]


def format_bound(microseconds: int) -> str:
    """Return a length of time as an upper bound, never rounded down."""
    unit = next((unit for below, unit in _UNITS if microseconds < below), 60 * MINUTE)
    return f"up to {format_length(-(-microseconds // unit) * unit)}"


def format_age(at: int, now: int) -> str:
    """Return how far an instant lies back, or ahead."""
    return f"{format_length(now - at)} ago" if at <= now else f"in {format_length(at - now)}"


def describe_writer(process: Writer) -> str:
    """Return who wrote: the service account or user, with the pod if the token names one."""
    if not (process.user or process.uid):
        return "an unknown writer"
    if process.pod:
        return f"{describe_user(process)} from pod {format_name(process.pod)}"
    if process.uid:
        return f"{describe_user(process)} from the pod with uid {format_name(process.uid)}"
    node = process.bound_node
    return describe_user(process) + (f" with a token for node {format_name(node)}" if node else "")


def describe_user(process: Writer) -> str:
    """Return the service account or user, and who acted as it."""
    return format_name(process.name) + (
        f" (impersonated by {format_name(process.impersonator)})" if process.impersonator else ""
    )


def describe_holder_or_another(tenure: Tenure) -> str:
    """Return the holder, with the doubt whether it renewed the lease itself."""
    if not tenure.holder:
        return "its writer"  # a heartbeat need not name one
    return format_name(tenure.holder) + (", or someone writing in its name," if tenure.is_ambiguous else "")


def name_deletion(deletion: PodDeletion) -> str:
    """`deleted`, `evicted`; of a deletion that does not wait until the containers of a pod have ended, that."""
    if deletion.is_eviction:
        return "evicted"
    return "deleted by force" if is_by_force(deletion) else "deleted"


def describe_grace(deletion: PodDeletion) -> str:
    """Say that a pod was given long to end, as the end of a clause; "" if it was not: by default it has 30 s."""
    is_long = deletion.grace is not None and deletion.grace > _LONG_GRACE
    return f", with {deletion.grace} s to end" if is_long else ""


def describe_by_writer(process: Writer | None) -> str:
    """` by shop/checkout from pod checkout-1`, "" if the input does not show who wrote."""
    return f" by {describe_writer(process)}" if process and process.user else ""


def format_count(number: int, what: str, plural: str = "") -> str:
    """`1 lease`, `2 leases`."""
    return f"{number} {what if number == 1 else plural or f'{what}s'}"


def format_times_after(requests: RequestsBefore, since: int) -> str:
    """`3 times`, of the requests before a takeover that came after an instant; `at least` if some may be forgotten."""
    return f"{'at least ' if requests.is_cut else ''}{format_count(len(requests.list_after(since)), 'time')}"


def join_with_and(texts: Sequence[str]) -> str:
    """Return `a, b and c`; "" of none."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)


def format_leases(named: Sequence[tuple[str, str]], number: int) -> str:
    """Return `a/b, c/d and 1 more`: a few of so many leases, by namespace and name."""
    names = [f"{format_name(namespace)}/{format_name(name)}" for namespace, name in named]
    names += [f"{number - len(named)} more"] if number > len(named) else []
    return join_with_and(names)
