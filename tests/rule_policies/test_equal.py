"""The exported policies and the engine say the same of recordings and of reviews of the attacks.

`make test` takes some of them, `make model` all; `make e2e E2E="--only policies"` makes 10,000 writes.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest

from tests.attacks import recorded
from tests.attacks.attack import STRICT, attacks
from tests.deep_json import decode
from tests.factories import Document, to_bytes
from tests.recordings import recordings
from tests.rule_policies import compared
from tests.rule_policies.in_process import ExportedPolicies
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy

T = TypeVar("T")
STEPS = [pytest.param(17, id="some"), pytest.param(1, id="all", marks=pytest.mark.deep)]


def some(everything: Iterator[T], step: int) -> Sequence[T]:
    return [*everything][::step]


def difference(policy: Policy, policies: ExportedPolicies, body: bytes, received: int) -> str:
    """Return what the engine finds and the policies do not, and the opposite; "" if they agree.

    A deletion is compared once more as one of a collection, for which an API server sends no name.
    """
    review: Document = decode(body)
    request: Document = review["request"]
    if request["operation"] == "DELETE" and request.pop("name", ""):
        alone = _find_difference(policy, policies, body, received)
        return alone or _find_difference(policy, policies, to_bytes(review), received)
    return _find_difference(policy, policies, body, received)


def _find_difference(policy: Policy, policies: ExportedPolicies, body: bytes, received: int) -> str:
    request: Document = decode(body)["request"]
    # The CEL library ends a text at a null character.
    if b"\\u0000" in body or request.get("subResource"):
        return ""
    wanted = compared.expected(compared.verdict_of(body, policy, received), request)
    seen = compared.found({(one.mode, one.rule) for one in policies.broken(request)}, request)
    return "" if wanted == seen else f"engine {sorted(wanted - seen)}, policies {sorted(seen - wanted)}"


@pytest.mark.uncounted
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("preset", ["observe", "strict"])
def test_policies_decide_recordings_as_the_engine_does(preset: str, step: int) -> None:
    policy = load(preset)
    policies = ExportedPolicies(policy)
    reviews = ((one.file, one.body_without_exemption(), one.received) for one in recordings())
    differences = [(name, difference(policy, policies, body, at)) for name, body, at in some(reviews, step)]
    assert not [one for one in differences if one[1]]


@pytest.mark.uncounted
@pytest.mark.parametrize("step", STEPS)
def test_reviews_of_the_attacks(step: int) -> None:
    policy = recorded.policy_of(STRICT)
    policies = ExportedPolicies(policy)
    reviews = (
        (one.id, review)
        for one in some(iter(attacks()), step)
        for review in recorded.reviews_of(one, STRICT)
        if len(review.body) < 100_000
    )
    differences = [(name, difference(policy, policies, one.body, one.received)) for name, one in reviews]
    assert not [one for one in differences if one[1]]
