"""Rules evaluated directly: one valid write, one thing changed, and what each rule finds.

The write is always a review's bytes through the real decoder; no policy is involved, so tiers are the rules' own.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from tests.factories import (
    NOW,
    Document,
    Tweak,
    as_version,
    changed,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.admission.rules.change import CandidateChange, LeaseChange, make_change
from webhook.admission.rules.finding import Finding
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.limits import DEFAULT_LIMITS, Limits
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import CHECKS, RULES
from webhook.admission.rules.stamps import Stamps
from webhook.kubernetes import times
from webhook.kubernetes.field import ErrorType, FieldError
from webhook.kubernetes.review import decode

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

REQUIRED, INVALID, FORBIDDEN = ErrorType.REQUIRED, ErrorType.INVALID, ErrorType.FORBIDDEN
NOT_SUPPORTED, TOO_LONG = ErrorType.NOT_SUPPORTED, ErrorType.TOO_LONG
DENY, WARN = Mode.DENY, Mode.WARN

Said = tuple[ErrorType, str, Mode]
RIVAL = "rival-5b8f7d-lk2mn_77aa"


_RECORDERS: Final[list[list[Document]]] = []
"""Lists to which each review that is evaluated is appended."""


@contextmanager
def recording_reviews(reviews: list[Document]) -> Iterator[None]:
    """Note each review that is evaluated meanwhile, of whatever a test made it."""
    _RECORDERS.append(reviews)
    try:
        yield
    finally:
        _RECORDERS.pop()


def change_of(
    review: Document,
    *,
    now: int = NOW,
    limits: Limits = DEFAULT_LIMITS,
    binding: Binding | None = None,
    stamps: Stamps | None = None,
) -> LeaseChange | CandidateChange:
    """The change that a review makes, as `evaluate` would build it."""
    for reviews in _RECORDERS:
        reviews.append(copy.deepcopy(review))
    request = decode(to_bytes(review))
    assert not request.contradiction, request.contradiction
    assert not request.object_errors, request.object_errors
    return make_change(request, now, limits, binding, stamps)


def findings(
    review: Document,
    *,
    now: int = NOW,
    limits: Limits = DEFAULT_LIMITS,
    binding: Binding | None = None,
    stamps: Stamps | None = None,
) -> dict[str, tuple[Finding, ...]]:
    """Return what each rule found, by rule id; silent rules are left out."""
    change = change_of(review, now=now, limits=limits, binding=binding, stamps=stamps)
    request = change.request
    by_rule = {
        rule.id: tuple(rule.check(change))
        for rule in CHECKS.find_rules(request.resource, request.operation, change.event)
    }
    return {rule: said for rule, said in by_rule.items() if said}


def said(rule: str, review: Document, *, now: int = NOW, binding: Binding | None = None) -> set[Said]:
    """(type, field, tier) of what one rule found."""
    raised = findings(review, now=now, binding=binding).get(rule, ())
    return {(one.error.type, one.error.field, one.tier) for one in raised}


def parity_errors(review: Document) -> list[tuple[str, FieldError]]:
    """Return what the rules that repeat the API server's checks found, with the ids of the rules."""
    return [(rule, one.error) for rule, found in findings(review).items() if RULES[rule].parity for one in found]


def field_errors(review: Document) -> list[tuple[str, ErrorType, str]]:
    """(rule, type, field) of what these rules found, in order."""
    return [(rule, error.type, error.field) for rule, error in parity_errors(review)]


def printed(review: Document) -> list[str]:
    """Return what these rules found, as people read it."""
    return [str(error) for _, error in parity_errors(review)]


def at(offset: int) -> str:
    """A MicroTime this many microseconds from NOW."""
    return times.format_micro_time(NOW + offset)


def written(*tweaks: Tweak, at: str) -> Tweak:
    """The tweaks, and the stamp that the API server puts on a write that changes the spec of a lease."""

    def tweak(document: Document) -> None:
        for change in (*tweaks, put("metadata.managedFields[0].time", at)):
            change(document)

    return tweak


def created(*tweaks: Tweak) -> Document:
    """The CREATE of a changed lease."""
    return make_review(new=make_lease(*tweaks))


def update(*tweaks: Tweak, old: Iterable[Tweak] = (), review: Iterable[Tweak] = ()) -> Document:
    """An UPDATE of a valid lease: `tweaks` change the new object, `old` both, `review` the request."""
    before = make_lease(*old)
    return make_review(*review, old=before, new=changed(before, *tweaks))


def deleted(*review: Tweak, old: Iterable[Tweak] = ()) -> Document:
    """The DELETE of a lease: `old` changes the lease, `review` the request."""
    return make_review(*review, old=make_lease(*old))


def candidate_created(*tweaks: Tweak, version: str = "v1beta1") -> Document:
    """The CREATE of a changed candidate of one version."""
    return make_review(new=make_candidate(as_version(version), *tweaks))


def candidate_updated(*tweaks: Tweak, version: str = "v1beta1", old: Iterable[Tweak] = ()) -> Document:
    """The UPDATE of a candidate of one version: `old` changes both objects, `tweaks` the new one."""
    before = make_candidate(as_version(version), *old)
    return make_review(old=before, new=changed(before, *tweaks))


def named(name: str) -> Tweak:
    """The object under another name."""
    return put("metadata.name", name)


def by_service_account(namespace: str, name: str, pod: str = "") -> Tweak:
    """The writer is this service account; its token is bound to `pod` where one is given."""

    def tweak(review: Document) -> None:
        review["request"]["userInfo"] = {
            "username": f"system:serviceaccount:{namespace}:{name}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/pod-name": [pod]} if pod else {},
        }

    return tweak


def by_user(username: str, *groups: str) -> Tweak:
    """The writer is this user."""
    return put("request.userInfo", {"username": username, "groups": [*groups, "system:authenticated"]})


def by_node(name: str) -> Tweak:
    """The writer is this node."""
    return by_user(f"system:node:{name}", "system:nodes")


def in_namespace(namespace: str, name: str) -> Callable[[Document], None]:
    """Move a review, and the objects in it, to another lease."""

    def tweak(review: Document) -> None:
        request = review["request"]
        request["namespace"], request["name"] = namespace, name
        for key in ("object", "oldObject"):
            if request[key]:
                request[key]["metadata"].update(namespace=namespace, name=name)

    return tweak


take = partial(put, "spec.holderIdentity")
