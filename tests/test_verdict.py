"""One sentence for each fact: how findings share it, why a warning is only one, and how long it may be."""

from statistics import median

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.attacks.attack import PRESETS, attacks
from tests.attacks.recorded import policy_of, reviews_of
from tests.factories import Document, changed, drop, make_lease, make_review, put
from tests.recordings import recordings
from tests.rules.findings import by_node, by_service_account, by_user, take, update, written
from tests.test_evaluate import ABSURD, OBSERVE, STANDARD, STEAL, STRICT, UNSTAMPED, evaluated, policy
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.rules.answer_limits import (
    MAX_CAUSE_BYTES,
    MAX_FINDINGS,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGE_SENTENCES,
    MAX_WARNING_CHARACTERS,
    MAX_WARNINGS_CHARACTERS,
)
from webhook.admission.rules.finding import Statement, escape_braces
from webhook.admission.verdict import Verdict, encode
from webhook.kubernetes.request import AdmissionRequest
from webhook.server.reviewer import respond

INTRUDER = by_service_account("guest", "intruder", "intruder-1")
ACROSS = changed(STEAL, INTRUDER)
WEAK = "takeover-before-expiry (only a warning: no API server stamps): "
RELEASE = update(put("spec.holderIdentity", ""), review=[INTRUDER])


# ---- one fact -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("review", "rules"),
    [
        pytest.param(ACROSS, ["takeover-before-expiry", "takeover-across-namespaces"], id="a steal across namespaces"),
        pytest.param(
            changed(STEAL, by_node("n1")), ["takeover-before-expiry", "takeover-by-node"], id="a steal by a node"
        ),
        pytest.param(RELEASE, ["foreign-release", "foreign-release-across-namespaces"], id="a release"),
    ],
)
def test_one_fact_is_one_sentence_with_all_its_rules(review: Document, rules: list[str]) -> None:
    verdict = evaluated(review, STRICT)
    (cause,) = verdict.causes
    assert cause.message.endswith(f"(lease webhook, rules {', '.join(rules)})")
    assert verdict.message == f"spec.holderIdentity: {cause.message}"
    assert not any(rule in warning for rule in rules for warning in verdict.warnings)
    assert [finding.rule for finding in verdict.findings][:2] == rules, "findings and annotations keep each rule"
    assert {f"{rule}=deny" for rule in rules} <= set(dict(verdict.audit_annotations)["rules"].split(","))
    (warning,) = (text for text in evaluated(review, OBSERVE).warnings if rules[0] in text)
    assert warning.partition(" (")[0] == ", ".join(["lease webhook", *rules])


def test_the_sentence_of_a_fact_is_that_of_the_special_rule() -> None:
    for strictness in (STANDARD, STRICT):
        assert "belongs to another namespace" in evaluated(ACROSS, strictness).message
    assert "is a node" in evaluated(changed(STEAL, by_node("n1")), STRICT).message


def test_a_denial_names_only_the_rules_that_deny_and_the_page() -> None:
    documented = policy("docs_url: https://example.com\n")
    assert evaluated(ACROSS, documented).message.endswith(
        "(lease webhook, rule takeover-across-namespaces, see https://example.com/takeover-across-namespaces)"
    )


def test_two_rules_that_deny_one_fact_are_both_named() -> None:
    assert evaluated(ACROSS, STRICT).message.endswith(
        "(lease webhook, rules takeover-before-expiry, takeover-across-namespaces)"
    )


def test_two_facts_are_two_sentences() -> None:
    both = changed(ABSURD, put("request.object.metadata.managedFields", []))
    assert len(evaluated(both, STRICT).causes) == len(evaluated(both, OBSERVE).warnings) == 2


def test_an_audited_finding_adds_no_rule_to_what_the_writer_reads() -> None:
    quiet = policy("rules: {takeover-before-expiry: {mode: audit}}")
    assert evaluated(ACROSS, quiet).message.endswith("(lease webhook, rule takeover-across-namespaces)")


# ---- why only a warning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("review", "under", "start"),
    [
        pytest.param(STEAL, STANDARD, "takeover-before-expiry: ", id="a rule that warns anyway"),
        pytest.param(STEAL, OBSERVE, "takeover-before-expiry (strict would deny this): ", id="strict"),
        pytest.param(
            ACROSS,
            OBSERVE,
            "takeover-before-expiry, takeover-across-namespaces (standard would deny this): ",
            id="one of two by standard",
        ),
        pytest.param(
            update(put("spec.leaseTransitions", 4)),
            policy("rules: {transitions-decrease: {mode: deny}}", "observe"),
            "transitions-decrease (only preset observe allows this): ",
            id="by no preset",
        ),
        pytest.param(
            STEAL, policy("mode: warn", "strict"), "takeover-before-expiry (only policy mode warn ", id="a cap"
        ),
        pytest.param(UNSTAMPED, STRICT, WEAK, id="no stamps"),
        pytest.param(UNSTAMPED, OBSERVE, WEAK, id="both reasons"),
    ],
)
def test_why_a_finding_only_warns(review: Document, under: Policy, start: str) -> None:
    warning = next(text for text in evaluated(review, under).warnings if text.startswith("lease webhook, t"))
    assert warning.startswith(f"lease webhook, {start}")


def test_a_missing_stamp_is_repaired_with_the_page_of_the_rule() -> None:
    documented = policy("docs_url: https://example.com\n", "strict")
    assert evaluated(UNSTAMPED, documented).warnings[0].endswith("; repair: https://example.com/lease-without-stamps")
    assert evaluated(UNSTAMPED, STRICT).warnings[0].endswith("; repair: lease-webhook rules lease-without-stamps")


def test_a_warning_ends_with_the_page_of_its_rule_if_there_is_room() -> None:
    review = make_review(new=make_lease(put("spec.leaseDurationSeconds", 172_800)))
    (plain,) = evaluated(review, OBSERVE).warnings
    warnings = evaluated(review, policy("docs_url: https://example.com\n", "observe")).warnings
    assert warnings == (f"{plain}; see https://example.com/duration-too-long",)
    far = policy(f"docs_url: https://example.com/{'x' * 108}\n", "observe")
    assert evaluated(review, far).warnings == (plain,)


def test_a_warning_on_a_denied_write_claims_nothing_that_did_not_happen() -> None:
    denied = evaluated(changed(STEAL, put("request.object.spec.leaseDurationSeconds", 2_147_483_647)))
    assert not denied.allowed
    (warning,) = denied.warnings
    assert warning.startswith(
        'lease webhook, takeover-before-expiry: spec.holderIdentity: lease "shop/checkout" is held by '
    )


def test_a_field_rule_warns_with_its_error() -> None:
    (warning,) = evaluated(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0))), OBSERVE).warnings
    assert warning == (
        "lease webhook, lease-duration (standard would deny this): "
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
    )


def test_a_warning_forbids_nothing() -> None:
    wrong = make_review(by_user("admin", "system:masters"), new=make_lease(put("spec.preferredHolder", "x")))
    (warning,) = evaluated(wrong, OBSERVE).warnings
    assert "Forbidden" not in warning


# ---- lengths --------------------------------------------------------------------------------------------------------


def long_names(holder: str, lease: str, user: str) -> list[Document]:
    named = (put("metadata.name", lease), put("spec.holderIdentity", holder or "a"))
    before = (*named, drop("metadata.managedFields[0].time"))
    tweaks = [put("request.name", lease), by_service_account("guest", user or "x", user)]
    return [
        update(written(take("b"), at="2025-11-20T12:00:01Z"), old=named, review=tweaks),
        update(take("b"), old=before, review=tweaks),
        update(put("spec.holderIdentity", ""), old=named, review=tweaks),
        update(take(holder), put("spec.leaseDurationSeconds", 2_147_483_647), old=named[:1], review=tweaks),
        update(put("spec.renewTime", None), put("metadata.managedFields", []), old=named, review=tweaks),
        make_review(*tweaks, old=make_lease(*named)),
        make_review(*tweaks, new=make_lease(*named)),
        update(
            put("metadata.ownerReferences", [{"apiVersion": "v1", "kind": holder, "name": lease, "uid": "1"}]),
            old=named,
            review=tweaks,
        ),
    ]


BOUND = "bindings:\n- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ['${pod}_%s']}" % ("y" * 300)
NAMES = st.text(st.sampled_from('aé"\\{}\u200b\U000e0100\x00 '), max_size=600)
UNDER = [OBSERVE, STANDARD, STRICT, policy(BOUND, "observe"), policy("docs_url: https://e.com/" + "x" * 100, "strict")]


def test_each_limit_of_an_answer_cuts_what_the_one_before_leaves() -> None:
    assert MAX_MESSAGE_SENTENCES < MAX_FINDINGS
    assert MAX_MESSAGE_BYTES < MAX_CAUSE_BYTES
    assert MAX_WARNING_CHARACTERS < MAX_WARNINGS_CHARACTERS


def test_a_message_repeats_the_first_causes_alone() -> None:
    labels = {f"a b{number}": "" for number in range(MAX_FINDINGS)}
    denied = evaluated(make_review(new=make_lease(put("metadata.labels", labels))), STRICT)
    assert (denied.code, len(denied.causes)) == (422, MAX_FINDINGS)
    assert denied.message.count("(lease webhook, rule ") == MAX_MESSAGE_SENTENCES


def test_a_denial_names_the_first_of_too_many_findings() -> None:
    labels = {f"-{number}{'<' * 200}": "" for number in range(MAX_FINDINGS)}
    denied = evaluated(make_review(new=make_lease(put("metadata.labels", labels))), UNDER[-1])
    sentences = denied.message.count("(lease webhook, rule ")
    assert 1 < sentences < len(denied.causes) < MAX_FINDINGS
    assert all(cause.message in denied.message for cause in denied.causes[:sentences])


@given(NAMES, NAMES, NAMES)
@example("\U000e0100" * 600, "{0}" * 200, "\\" * 600)
@example("a" * 600, "checkout", "")
@example("", "checkout", "x" * 600)
def test_no_warning_exceeds_256_characters(holder: str, lease: str, user: str) -> None:
    for review in long_names(holder, lease, user):
        for under in UNDER:
            for warning in evaluated(review, under).warnings:
                assert len(warning) <= 256
                assert warning.isprintable()


def test_names_are_cut_before_the_words_and_the_longest_first() -> None:
    review = long_names("h" * 600, "checkout", "x")[0]
    warning = evaluated(review, OBSERVE).warnings[0]
    assert len(warning) > 250
    assert 'lease "shop/checkout" was taken from "hhhh' in warning
    assert warning.endswith('hhh..." 14 s before expiry: there may be two leaders')


def test_a_statement_keeps_braces_of_names_and_of_literal_text() -> None:
    assert Statement(escape_braces("{0} {page} ") + "{0}", ("{1}",)).shorten(256) == '{0} {page} "{1}"'


def test_a_statement_without_names_is_cut_at_its_end() -> None:
    assert Statement("x" * 300).shorten(256) == "x" * 253 + "..."


def test_a_statement_keeps_to_any_length() -> None:
    statement = Statement("lease {0} of {1}: there may be two leaders", ("é\x00" * 90, "b"))
    for longest in range(3, 80):
        assert len(statement.shorten(longest)) <= longest


# ---- the recorded reviews -------------------------------------------------------------------------------------------


def over_120(preset: str) -> dict[str, str]:
    """The warnings over 120 characters that recorded reviews get, by the rule that they begin with."""
    reasons = {}
    for recording in recordings():
        for warning in recorded_verdict(recording.body_without_exemption(), preset, recording.received).warnings:
            assert len(warning) <= 256
            if len(warning) > 120:
                reasons[warning] = why_over_120(warning)
    return reasons


def recorded_verdict(body: bytes, preset: str, received: int) -> Verdict:
    verdict = respond(body, load(preset), received).verdict
    assert verdict is not None
    return verdict


def why_over_120(warning: str) -> str:
    rules = warning.partition(": ")[0]
    if " (" in rules:
        return "says why it is only a warning"
    if ": spec." in warning:
        return "on a denied write"
    return "names the page of a rule" if "; repair: " in warning else "names of the client"


@pytest.mark.uncounted
@pytest.mark.parametrize(
    ("preset", "reasons"),
    [
        pytest.param(
            "standard",
            {"on a denied write", "says why it is only a warning", "names of the client"},
            id="standard",
        ),
        pytest.param(
            "strict",
            {"on a denied write", "says why it is only a warning", "names the page of a rule", "names of the client"},
            id="strict",
        ),
        pytest.param("observe", {"says why it is only a warning", "names of the client"}, id="observe"),
    ],
)
def test_why_a_recorded_review_gets_more_than_120_characters(preset: str, reasons: set[str]) -> None:
    assert set(over_120(preset).values()) == reasons


@pytest.mark.uncounted
def test_half_of_the_denials_have_at_most_200_characters_before_the_name_of_their_rule() -> None:
    """All denials of recorded reviews and recorded attacks count, by the presets that deny."""
    verdicts = [
        recorded_verdict(recording.body_without_exemption(), preset, recording.received)
        for recording in recordings()
        for preset in PRESETS
    ]
    verdicts += [
        reply.verdict
        for attack in attacks()
        for preset in PRESETS
        for review in reviews_of(attack, preset)
        if (reply := respond(review.body, policy_of(preset), review.received)).verdict
    ]
    texts = [f"{one.field}: {one.message}" for verdict in verdicts for one in verdict.causes]
    lengths = [len(text.partition(" (lease webhook, ")[0]) for text in texts]
    assert len(lengths) > 300
    assert median(lengths) <= 200


# ---- the wire form ---------------------------------------------------------------------------------------------------


def test_a_plain_answer_as_it_stands_on_the_wire() -> None:
    verdict = Verdict("u-1", allowed=True, audit_annotations=(("event", "renewal"), ("policy", "standard 0123abcd")))
    assert encode(verdict, AdmissionRequest("u-1")) == (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true,'
        b'"auditAnnotations":{"event":"renewal","policy":"standard 0123abcd"}}}'
    )


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        pytest.param(Verdict("1", allowed=True), "allowed", id="allowed"),
        pytest.param(Verdict("1", allowed=True, warnings=("x",)), "warned", id="allowed, with a warning"),
        pytest.param(Verdict("1", allowed=False, warnings=("x",)), "denied", id="denied, with a warning"),
    ],
)
def test_the_outcome_is_one_word(verdict: Verdict, outcome: str) -> None:
    assert verdict.outcome == outcome
