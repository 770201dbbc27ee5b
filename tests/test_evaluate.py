"""Levels, caps, exemptions and the decision over all findings."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.factories import NOW, Document, Tweak, changed, drop, make_candidate, make_lease, make_review, put, to_bytes
from tests.rules.findings import RIVAL, SECOND, by_service_account, by_user, take, update, written
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.checks import Checks
from webhook.admission.rules.finding import Finding
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.admission.verdict import Verdict, encode
from webhook.kubernetes.field import invalid
from webhook.kubernetes.review import decode


def policy(text: str = "", preset: str = "standard") -> Policy:
    return parse(f"apiVersion: lease-webhook/v1\npreset: {preset}\n{text}")


STANDARD, STRICT, OBSERVE = (policy(preset=name) for name in ("standard", "strict", "observe"))
STEAL = update(
    written(take(RIVAL), put("spec.leaseTransitions", 6), at="2025-11-20T12:00:04Z"), review=[by_user("dev")]
)
ABSURD = update(put("spec.leaseDurationSeconds", 2_147_483_647), put("spec.renewTime", "2025-11-20T12:00:01.000000Z"))
UNSTAMPED = changed(
    STEAL, drop("request.object.metadata.managedFields"), drop("request.oldObject.metadata.managedFields")
)


def evaluated(
    review: Document, policy: Policy = STANDARD, now: int = NOW + 4 * SECOND, *, writer_known: bool = True
) -> Verdict:
    return evaluate(decode(to_bytes(review)), policy, now, writer_known=writer_known)


def annotations(verdict: Verdict) -> dict[str, str]:
    return dict(verdict.audit_annotations)


def test_an_allowed_write() -> None:
    verdict = evaluated(make_review())
    assert (verdict.allowed, verdict.code, verdict.event) == (True, 200, "create")
    assert verdict.audit_annotations == (("event", "create"), ("policy", f"standard {STANDARD.digest}"))
    assert (verdict.warnings, verdict.causes, verdict.findings) == ((), (), ())


def test_a_warned_write() -> None:
    verdict = evaluated(STEAL)
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert warning.startswith('lease webhook, takeover-before-expiry: lease "shop/checkout" was taken from ')
    assert annotations(verdict)["rules"] == "takeover-before-expiry=warn"
    assert "would-deny" not in annotations(verdict)


def test_a_forbidden_write() -> None:
    verdict = evaluated(STEAL, STRICT)
    text = f"{verdict.findings[0].error.body} (lease webhook, rule takeover-before-expiry)"
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 403, "Forbidden")
    assert verdict.message == f"spec.holderIdentity: {text}"
    (cause,) = verdict.causes
    assert (cause.reason, cause.field, cause.message) == ("FieldValueForbidden", "spec.holderIdentity", text)
    assert annotations(verdict)["rules"] == "takeover-before-expiry=deny"


def test_an_invalid_write() -> None:
    verdict = evaluated(ABSURD)
    text = (
        "Invalid value: 2147483647: must not be greater than 31536000; a dead holder would keep the lease for as long "
        "(lease webhook, rule duration-too-long)"
    )
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 422, "Invalid")
    assert verdict.message == f'Lease.coordination.k8s.io "checkout" is invalid: spec.leaseDurationSeconds: {text}'
    assert [cause.message for cause in verdict.causes] == [text]


def test_one_code_and_all_findings() -> None:
    both = changed(ABSURD, put("request.object.metadata.managedFields", []))
    verdict = evaluated(both)
    assert verdict.code == 403
    assert [cause.field for cause in verdict.causes] == ["metadata.managedFields", "spec.leaseDurationSeconds"]
    assert verdict.message.startswith("[metadata.managedFields: Forbidden: ")
    assert verdict.message.endswith("(lease webhook, rule duration-too-long)]")


def test_a_parity_rules_forbidden_is_invalid() -> None:
    """kube-apiserver itself answers 422 for preferredHolder without strategy."""
    review = make_review(by_user("admin", "system:masters"), new=make_lease(put("spec.preferredHolder", "x")))
    verdict = evaluated(review)
    assert (verdict.code, [cause.reason for cause in verdict.causes]) == (422, ["FieldValueForbidden"])


def test_denials_name_the_page_of_each_rule() -> None:
    documented = policy("docs_url: https://example.com/rules/\n", "strict")
    both = evaluated(changed(ABSURD, put("request.object.metadata.managedFields", [])), documented)
    pages = [
        f"(lease webhook, rule {rule}, see https://example.com/rules/{rule})"
        for rule in ("renewal-stamp-tampered", "duration-too-long")
    ]
    assert [cause.message.rpartition(" (")[2] for cause in both.causes] == [page[1:] for page in pages]
    assert [page in both.message for page in pages] == [True, True]
    assert both.message.endswith(f"{pages[-1]}]")
    plain = evaluated(changed(ABSURD, put("request.object.metadata.managedFields", [])), STRICT)
    assert plain.findings == both.findings
    assert "https" not in plain.message


def test_a_request_that_no_rule_refuses_names_no_page() -> None:
    documented = policy("docs_url: https://example.com\n")
    verdict = evaluated(make_review(put("request.operation", "PATCH")), documented)
    assert verdict.message.endswith(" (lease webhook)")


def test_a_rule_with_findings_of_two_modes_is_in_the_annotation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def takeover_across_namespaces(_change: object) -> tuple[Finding, ...]:
        error = invalid("spec.holderIdentity", "x", "no")
        return Finding(error, tier=Mode.WARN), Finding(error, tier=Mode.DENY), Finding(error, tier=Mode.WARN)

    rule = replace(RULES["takeover-across-namespaces"], check=takeover_across_namespaces)
    monkeypatch.setattr("webhook.admission.evaluate.CHECKS", Checks([rule]))
    assert annotations(evaluated(STEAL))["rules"] == "takeover-across-namespaces=deny"


def test_warnings_and_audit_findings_ride_on_a_denial() -> None:
    review = changed(STEAL, by_service_account("guest", "intruder", "intruder-1"))
    verdict = evaluated(review)
    assert annotations(verdict)["rules"] == (
        "takeover-before-expiry=warn,takeover-across-namespaces=deny,holder-identity-mismatch=audit"
    )
    assert (len(verdict.causes), verdict.warnings) == (1, ()), "both are about one fact, which one sentence states"
    assert [finding.mode for finding in verdict.findings] == [Mode.WARN, Mode.DENY, Mode.AUDIT]


@pytest.mark.parametrize(
    ("capped", "because"),
    [
        pytest.param(OBSERVE, "standard would deny this", id="observe"),
        pytest.param(policy("mode: warn", "strict"), "only policy mode warn allows this", id="mode: warn"),
    ],
)
def test_a_cap_turns_denials_into_warnings_that_say_so(capped: Policy, because: str) -> None:
    verdict = evaluated(ABSURD, capped)
    assert verdict.allowed
    assert verdict.warnings[0].startswith(f"lease webhook, duration-too-long ({because}): ")
    assert annotations(verdict)["would-deny"] == "duration-too-long"
    parity = evaluated(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0))), capped)
    assert parity.allowed
    assert annotations(parity)["would-deny"] == "lease-duration"


def test_observe_names_what_strict_would_deny_too() -> None:
    assert annotations(evaluated(STEAL, OBSERVE))["would-deny"] == "takeover-before-expiry"


def test_an_audit_cap_is_silent_to_the_writer() -> None:
    verdict = evaluated(ABSURD, policy("mode: audit"))
    assert (verdict.allowed, verdict.warnings) == (True, ())
    assert annotations(verdict)["rules"] == "duration-too-long=audit"
    assert annotations(verdict)["would-deny"] == "duration-too-long"


def test_the_kill_switch_allows_everything_and_says_so() -> None:
    off = policy("mode: off")
    for review in (ABSURD, STEAL, make_review(put("request.operation", "PATCH"))):
        verdict = evaluated(review, off)
        assert verdict.allowed
        assert annotations(verdict) == {"policy": f"standard {off.digest} off"}


def test_a_mode_never_raises_a_tier() -> None:
    review = update(put("spec.leaseTransitions", 8))
    assert evaluated(review, policy("rules: {transitions-jump: {mode: deny}}")).allowed


def test_a_rule_switched_off_is_silent() -> None:
    assert evaluated(ABSURD, policy("rules: {duration-too-long: {mode: off}}")).findings == ()


def test_exemptions_silence_policy_rules_and_never_parity() -> None:
    admin = by_user("admin", "system:masters")
    assert evaluated(changed(STEAL, admin), STRICT).findings == ()
    assert not evaluated(
        changed(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0))), admin), STRICT
    ).allowed
    unreadable = update(put("spec.renewTime", "10000-01-01T00:00:00.000000Z"), review=[admin])
    assert not evaluated(unreadable).allowed


VELERO = by_service_account("velero", "velero", "velero-7d9f-x1x2")
RESTORES = """\
exempt:
- service_accounts: [velero/velero]
  rules: [preferred-holder-writer, strategy-writer, ping-time-writer]
  operations: [CREATE]
  owner: backup team
  reason: restores
"""
RESTORED = make_review(VELERO, new=make_lease(put("spec.strategy", "a/b"), put("spec.preferredHolder", "x")))


def test_a_backup_tool_restores_what_others_may_not_create() -> None:
    assert evaluated(RESTORED, policy(RESTORES, "strict")).allowed
    assert not evaluated(changed(RESTORED, by_user("dev")), policy(RESTORES, "strict")).allowed


@pytest.mark.parametrize(
    ("write", "rules"),
    [
        pytest.param(changed(STEAL, VELERO), "takeover-before-expiry=deny,takeover-across-namespaces=deny", id="steal"),
        pytest.param(
            update(
                put("spec.leaseTransitions", 6),
                put("spec.strategy", "a/b"),
                review=[VELERO],
            ),
            "strategy-writer=deny",
            id="the rule on another operation",
        ),
        pytest.param(changed(ABSURD, VELERO), "duration-too-long=deny", id="an absurd duration"),
    ],
)
def test_a_backup_tool_may_not_steal(write: Document, rules: str) -> None:
    verdict = evaluated(write, policy(RESTORES, "strict"))
    assert not verdict.allowed
    assert set(rules.split(",")) <= set(annotations(verdict)["rules"].split(","))


def test_an_exemption_without_rules_covers_a_steal() -> None:
    wide = RESTORES.replace("  rules: [preferred-holder-writer, strategy-writer, ping-time-writer]\n", "")
    steal = changed(STEAL, VELERO)
    assert not evaluated(steal, policy(wide, "strict")).allowed, "it is a CREATE that is exempt"
    assert evaluated(steal, policy(wide.replace("CREATE", "UPDATE"), "strict")).findings == ()


def test_an_override_holds_on_its_operations_only() -> None:
    relaxed = "overrides:\n- {operations: [%s], rules: {takeover-before-expiry: {mode: warn}}}"
    assert evaluated(STEAL, policy(relaxed % "UPDATE", "strict")).allowed
    assert not evaluated(STEAL, policy(relaxed % "CREATE, DELETE", "strict")).allowed


def test_an_exemption_of_a_place_holds_for_a_document_that_was_never_sent() -> None:
    everyone = policy("exempt:\n- {namespaces: [shop], owner: shop, reason: migration}")
    unsent = changed(ABSURD, drop("request.userInfo"))
    assert not evaluated(unsent).allowed
    assert evaluated(unsent, everyone).findings == ()


def test_what_decided_is_among_the_findings_however_many_there_are() -> None:
    labels = put("request.object.metadata.labels", {f"-{number}": "" for number in range(60)})
    verdict = evaluated(changed(ABSURD, labels), policy("overrides:\n- {rules: {object-metadata: {mode: warn}}}"))
    assert not verdict.allowed
    assert [finding.rule for finding in verdict.findings if finding.mode is Mode.DENY] == ["duration-too-long"]


def test_without_stamps_a_denial_weakens_unless_the_policy_enforces_it() -> None:
    weak = evaluated(UNSTAMPED, STRICT)
    assert weak.allowed
    assert weak.warnings[-1].startswith(
        "lease webhook, takeover-before-expiry (only a warning: no API server stamps): "
    )
    assert annotations(weak)["would-deny"] == "takeover-before-expiry"
    assert not evaluated(UNSTAMPED, policy("without_stamps: enforce", "strict")).allowed
    assert evaluated(UNSTAMPED).allowed, "a warning stays a warning"


def test_rules_about_the_writer_can_be_left_out() -> None:
    review = update(put("spec.strategy", "a/b"), put("spec.leaseTransitions", 6))
    assert not evaluated(review).allowed
    assert evaluated(review, writer_known=False).allowed


def test_a_contradiction_is_a_400_in_every_mode_but_off() -> None:
    review = make_review(put("request.operation", "PATCH"))
    for strictness in (STANDARD, OBSERVE, policy("mode: audit")):
        verdict = evaluated(review, strictness)
        assert (verdict.allowed, verdict.code, verdict.reason) == (False, 400, "BadRequest")
        assert verdict.message == "request.operation must be CREATE, UPDATE, DELETE or CONNECT (lease webhook)"


def test_wrong_types_are_invalid() -> None:
    verdict = evaluated(make_review(put("request.object.spec.leaseDurationSeconds", "15")))
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert verdict.causes[0].message == (
        "Invalid type: must be an integer, not a string (lease webhook, rule object-types)"
    )
    assert evaluated(make_review(put("request.object.spec", 5)), OBSERVE).allowed


def test_long_warnings_of_field_rules_are_cut() -> None:
    labels = {f"{'é' * 120}{number}": "" for number in range(7)}
    verdict = evaluated(make_review(put("request.object.metadata.labels", labels)), OBSERVE)
    assert len(verdict.warnings) == 14
    assert sum(map(len, verdict.warnings)) <= 4096
    assert max(len(warning) for warning in verdict.warnings) == 256
    assert any(warning.endswith("...") for warning in verdict.warnings)


OTHERS: list[tuple[str, list[Tweak], str]] = [
    (
        "another resource",
        [
            put("request.kind", {"group": "", "version": "v1", "kind": "Pod"}),
            put("request.resource", {"group": "", "version": "v1", "resource": "pods"}),
        ],
        'pods of group "" is not evaluated; the known resources are leases and leasecandidates',
    ),
    (
        "an unknown version",
        [put("request.kind.version", "v9"), put("request.resource.version", "v9")],
        'version "v9" of leases is not evaluated; the known versions are v1, v1beta1',
    ),
    ("a subresource", [put("request.subResource", "status")], "subresource leases/status is not evaluated"),
    (
        "a subresource of another kind",
        [
            put("request.subResource", "scale"),
            put("request.kind", {"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            put("request.object", {"apiVersion": "autoscaling/v1", "kind": "Scale"}),
        ],
        "subresource leases/scale is not evaluated",
    ),
    ("CONNECT", [put("request.operation", "CONNECT")], "CONNECT to leases is not evaluated"),
    (
        "CONNECT with options of another kind",
        [
            put("request.operation", "CONNECT"),
            put("request.kind", {"group": "", "version": "v1", "kind": "ProxyOptions"}),
        ],
        "CONNECT to leases is not evaluated",
    ),
]


@pytest.mark.parametrize(("tweaks", "text"), [pytest.param(tweaks, text, id=name) for name, tweaks, text in OTHERS])
def test_an_object_of_another_kind_is_allowed_with_a_warning(tweaks: list[Tweak], text: str) -> None:
    verdict = evaluated(make_review(*tweaks))
    assert verdict.allowed
    assert verdict.warnings == (f"lease webhook: {text}; narrow the rules of the webhook configuration",)


def answer(review: Document, policy: Policy = STANDARD) -> Any:
    request = decode(to_bytes(review))
    return json.loads(encode(evaluate(request, policy, NOW + 4 * SECOND), request))


def test_the_bytes_of_an_answer() -> None:
    denied = answer(changed(STEAL, put("apiVersion", "admission.k8s.io/v1beta1")), STRICT)
    assert (denied["kind"], denied["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1beta1")
    status = denied["response"]["status"]
    assert (status["status"], status["code"], status["reason"]) == ("Failure", 403, "Forbidden")
    assert {key: status["details"][key] for key in ("name", "group", "kind")} == {
        "name": "checkout",
        "group": "coordination.k8s.io",
        "kind": "Lease",
    }
    allowed = answer(make_review())
    assert set(allowed["response"]) == {"uid", "allowed", "auditAnnotations"}


@pytest.mark.parametrize(
    "under",
    [
        pytest.param(STANDARD, id="standard"),
        pytest.param(policy(f"docs_url: https://example.com/{'x' * 108}\n"), id="with the longest docs_url"),
        pytest.param(policy(f"docs_url: https://example.com/{'{rule}' * 18}\n"), id="with the longest page"),
    ],
)
def test_an_answer_stays_small(under: Policy) -> None:
    owners = [{"apiVersion": "", "kind": "", "name": f"{'<' * 5000}{number}", "uid": ""} for number in range(300)]
    request = decode(to_bytes(make_review(put("request.object.metadata.ownerReferences", owners))))
    assert len(encode(evaluate(request, under, NOW), request)) < 65_536


def test_a_binding_holds_for_the_candidates_that_name_its_lease() -> None:
    bound = policy("bindings:\n- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ['*']}\n")
    stranger = by_service_account("guest", "intruder")
    for review, denied in (
        (make_review(stranger, new=make_candidate()), True),
        (make_review(stranger, old=make_candidate()), True),
        (make_review(stranger, new=make_candidate(put("spec.leaseName", "other"))), False),
        (
            make_review(stranger, new=make_candidate(put("metadata.name", "checkout"), put("spec.leaseName", "a"))),
            False,
        ),
        (make_review(stranger, old=make_candidate(put("metadata.name", "checkout"), drop("spec"))), False),
    ):
        assert ("identity-binding=deny" in annotations(evaluated(review, bound)).get("rules", "")) is denied
