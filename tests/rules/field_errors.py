"""The field rules asked directly: one valid write, one thing changed, and what all of them have to say about it."""

from tests.factories import Document, Tweak, changed, make_candidate, make_lease, make_review, put, to_bytes
from webhook.api.field import ErrorType, FieldError
from webhook.api.review import decode
from webhook.rules.change import change_made_by
from webhook.rules.registry import RULES

NOW = 1_763_640_000_000_000
REQUIRED, INVALID = ErrorType.REQUIRED, ErrorType.INVALID
NOT_SUPPORTED, FORBIDDEN, TOO_LONG = ErrorType.NOT_SUPPORTED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG

Said = tuple[str, ErrorType, str]
"""Rule, type and field."""


def errors(review: Document) -> list[tuple[str, FieldError]]:
    """Every finding of a field rule, with the rule's id."""
    request = decode(to_bytes(review))
    assert not request.object_errors, request.object_errors
    change = change_made_by(request, NOW)
    return [
        (rule.id, finding.error)
        for rule in RULES.values()
        if rule.parity and request.resource in rule.resources and request.operation in rule.operations
        for finding in rule.check(change)
    ]


def said(review: Document) -> list[Said]:
    """Rule, type and field of every finding, in order."""
    return [(rule, error.type, error.field) for rule, error in errors(review)]


def printed(review: Document) -> list[str]:
    """Every finding as people read it."""
    return [str(error) for _, error in errors(review)]


def created(*tweaks: Tweak) -> Document:
    """The CREATE of a changed lease."""
    return make_review(new=make_lease(*tweaks))


def updated(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    """The UPDATE of a lease: `old` changes both objects, `tweaks` the new one."""
    before = make_lease(*old)
    return make_review(old=before, new=changed(before, *tweaks))


def candidate_created(*tweaks: Tweak, version: str = "v1beta1") -> Document:
    """The CREATE of a changed candidate of one version."""
    return make_review(new=make_candidate(of_version(version), *tweaks))


def candidate_updated(*tweaks: Tweak, version: str = "v1beta1", old: tuple[Tweak, ...] = ()) -> Document:
    """The UPDATE of a candidate of one version: `old` changes both objects, `tweaks` the new one."""
    before = make_candidate(of_version(version), *old)
    return make_review(old=before, new=changed(before, *tweaks))


def of_version(version: str) -> Tweak:
    """A candidate as that version has it: v1alpha1 lists its strategies."""

    def tweak(document: Document) -> None:
        document["apiVersion"] = f"coordination.k8s.io/{version}"
        if version == "v1alpha1":
            document["spec"]["preferredStrategies"] = [document["spec"].pop("strategy")]

    return tweak


def named(name: str) -> Tweak:
    """The object under another name."""
    return put("metadata.name", name)
