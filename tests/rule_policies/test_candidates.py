"""A candidate has the settings of the lease that it names, in the engine and in policies: its own name is free text."""

from typing import Final

import pytest

from tests.factories import NOW, Document, Tweak, changed, make_candidate, make_review, put, to_bytes
from tests.rule_policies import compared
from tests.rule_policies.in_process import ExportedPolicies
from webhook.admission.policy.parse import parse
from webhook.admission.rules.mode import Mode

BOUND: Final = """\
apiVersion: lease-webhook/v1
preset: strict
bindings: [{namespace: shop, lease: checkout, writers: [shop/op], holder: ['*']}]
"""
RULE: Final = "identity-binding"
EXEMPT_ELSEWHERE: Final = "exempt: [{owner: o, reason: r, leases: ['tmp-*']}]"
EXEMPT: Final = "exempt: [{owner: o, reason: r, leases: [checkout, 'tmp-*']}]"
WARNED_ELSEWHERE: Final = "overrides: [{leases: ['tmp-*'], rules: {identity-binding: {mode: warn}}}]"
WARNED: Final = "overrides: [{leases: [checkout], rules: {identity-binding: {mode: warn}}}]"
RENEWED: Final = put("spec.renewTime", "2025-11-20T12:00:01.000000Z")
CALLED: Final = put("metadata.name", "tmp-1")
OF_ANOTHER: Final = put("spec.leaseName", "tmp-1")


def created(*tweaks: Tweak) -> Document:
    return make_review(new=make_candidate(*tweaks))


def renewed(*tweaks: Tweak) -> Document:
    old = make_candidate(*tweaks)
    return make_review(old=old, new=changed(old, RENEWED))


def moved(*, before: tuple[Tweak, ...] = (), after: tuple[Tweak, ...] = ()) -> Document:
    """An update of another lease, which no API server admits."""
    return make_review(old=make_candidate(*before), new=make_candidate(*after, RENEWED))


@pytest.mark.parametrize(
    ("more", "review", "mode"),
    [
        pytest.param("", created(), "deny", id="a stranger"),
        pytest.param(EXEMPT_ELSEWHERE, created(CALLED), "deny", id="called as a lease with an exemption"),
        pytest.param(EXEMPT_ELSEWHERE, renewed(CALLED), "deny", id="called as a lease with an exemption, renewed"),
        pytest.param(
            EXEMPT_ELSEWHERE, make_review(old=make_candidate(CALLED)), "deny", id="called as a lease with one, deleted"
        ),
        pytest.param(EXEMPT, created(), None, id="of a lease with an exemption"),
        pytest.param(EXEMPT, renewed(), None, id="of a lease with an exemption, renewed"),
        pytest.param(EXEMPT, make_review(old=make_candidate()), None, id="of a lease with an exemption, deleted"),
        pytest.param(WARNED_ELSEWHERE, created(CALLED), "deny", id="called as a lease with an override"),
        pytest.param(WARNED, created(), "warn", id="of a lease with an override"),
        pytest.param(WARNED, make_review(old=make_candidate()), "warn", id="of a lease with an override, deleted"),
        pytest.param(EXEMPT_ELSEWHERE, moved(before=(OF_ANOTHER,)), "deny", id="moved from a lease with an exemption"),
        pytest.param(EXEMPT, moved(before=(OF_ANOTHER,)), "deny", id="moved between leases with an exemption"),
        pytest.param(
            EXEMPT, moved(before=(put("spec.leaseName", ""),)), None, id="to a lease with an exemption from none"
        ),
        pytest.param(WARNED_ELSEWHERE, moved(before=(OF_ANOTHER,)), "deny", id="moved from a lease with an override"),
        pytest.param(WARNED, moved(before=(OF_ANOTHER,)), "warn", id="moved to a lease with an override"),
    ],
)
def test_settings_of_a_candidate_are_those_of_its_lease(more: str, review: Document, mode: str | None) -> None:
    policy = parse(BOUND + more)
    of_engine = {one.rule: one.mode for one in compared.verdict_of(to_bytes(review), policy, NOW).findings}
    assert of_engine.get(RULE) == (None if mode is None else Mode[mode.upper()])
    in_policies = {one.rule: one.mode for one in ExportedPolicies(policy).broken(review["request"])}
    assert in_policies.get(RULE) == mode
