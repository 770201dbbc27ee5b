"""`lease-webhook test`: files of expected verdicts."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import make_lease, make_review, put, to_bytes
from tests.reports.test_reports import VALIDATOR
from webhook.cli.main import main

Run = Callable[..., tuple[int, str, str]]

LIVE = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: checkout, namespace: shop}
spec:
  holderIdentity: checkout-0
  leaseDurationSeconds: 15
  leaseTransitions: 1
  renewTime: "2026-01-31T12:00:00.000000Z"
"""
TAKEN = LIVE.replace("checkout-0", "checkout-1").replace("Transitions: 1", "Transitions: 2")
SHOP = """\
# What may happen to the leases of the shop.
policy: strict          # as in production
stamped: true
user: system:serviceaccount:shop:checkout

cases:
- name: a live lease is not taken
  old: live.yaml
  new: taken.yaml       # another pod
  now: 2026-01-31T12:00:05Z
  expect:
    allowed: false
    event: steal
    rules: {takeover-before-expiry: deny}

- name: an expired lease is taken
  old: live.yaml
  new: taken.yaml
  now: 2026-01-31T12:01:00Z
  expect: {allowed: true, event: takeover, rules: {}}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `test` in a directory with two manifests; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("live.yaml").write_text(LIVE)
    Path("taken.yaml").write_text(TAKEN)

    def command(*args: str, file: str | None = None) -> tuple[int, str, str]:
        if file is not None:
            Path("shop.test.yaml").write_bytes(file.encode())
        code = main(["test", *(args or ["."])])
        return code, *capsys.readouterr()

    return command


def test_expected_verdicts_pass(run: Run) -> None:
    assert run(file=SHOP) == (0, "2 cases: 2 passed\n", "")
    assert run(".", "--verbose") == (
        0,
        """\
passed      shop.test.yaml:7  a live lease is not taken
passed      shop.test.yaml:16  an expired lease is taken
2 cases: 2 passed
""",
        "",
    )


def test_a_difference_is_shown_with_the_reason_of_the_verdict(run: Run) -> None:
    code, out, err = run(
        file=SHOP.replace("allowed: false", "allowed: true").replace("{takeover-before-expiry: deny}", "{x: warn}")
    )
    assert (code, err) == (1, "")
    assert out.splitlines()[:5] == [
        "failed      shop.test.yaml:7  a live lease is not taken",
        "            allowed: expected true, got false",
        "            rules: x: expected warn, got nothing",
        "            rules: takeover-before-expiry: expected nothing, got deny",
        '            spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-0", last',
    ]
    assert out.splitlines()[-1] == "2 cases: 1 failed, 1 passed"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (("event: steal", "event: renewal"), "event: expected renewal, got steal"),
        (
            ("takeover-before-expiry: deny", "takeover-before-expiry: warn"),
            "takeover-before-expiry: expected warn, got deny",
        ),
        (("{takeover-before-expiry: deny}", "{}"), "takeover-before-expiry: expected nothing, got deny"),
        (("  expect: {allowed: true, event: takeover, rules: {}}\n", ""), "nothing is expected"),
    ],
    ids=["event", "mode", "rule", "nothing"],
)
def test_everything_that_is_expected_is_compared(change: tuple[str, str], difference: str, run: Run) -> None:
    code, out, _ = run(file=SHOP.replace(*change))
    assert (code, difference in out) == (1, True)


def test_what_is_not_expected_is_not_compared(run: Run) -> None:
    assert run(file=SHOP.replace("    event: steal\n    rules: {takeover-before-expiry: deny}\n", ""))[0] == 0


def test_without_stamps_a_takeover_is_only_warned_about(run: Run) -> None:
    code, out, _ = run(file=SHOP.replace("stamped: true\n", ""))
    assert (code, "takeover-before-expiry: expected deny, got warn" in out) == (1, True)


def test_another_policy_in_place_of_that_of_the_files(run: Run) -> None:
    code, out, _ = run(".", "--policy", "standard", file=SHOP)
    assert (code, "allowed: expected false, got true" in out) == (1, True)


def test_a_policy_file_stands_beside_the_cases(run: Run) -> None:
    Path("policies").mkdir()
    Path("policies/shop.yaml").write_text("apiVersion: lease-webhook/v1\npreset: strict\n")
    assert run(file=SHOP.replace("policy: strict ", "policy: policies/shop.yaml "))[0] == 0


def test_reviews_objects_in_place_and_deletions(run: Run) -> None:
    Path("review.json").write_bytes(to_bytes(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0)))))
    lease = json.dumps(yaml.safe_load(LIVE))
    file = f"""\
cases:
- {{name: recorded, review: review.json, expect: {{allowed: false, rules: {{lease-duration: deny}}}}}}
- {{name: written here, new: {lease}, expect: {{allowed: true, event: create}}}}
- {{name: deleted, old: live.yaml, expect: {{allowed: true, event: delete}}}}
- {{name: review here, review: {json.dumps(make_review(new=make_lease()))}, expect: {{allowed: true}}}}
"""
    assert run(file=file) == (0, "4 cases: 4 passed\n", "")


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("cases:\n- name: a\n", "a case needs a review, or new, or old, or both"),
        ("cases:\n- {name: a, review: r.json, new: live.yaml}\n", "a case has a review, or old and new"),
        ("cases:\n- {name: a, new: live.yaml, groups: [x]}\n", "groups need a user: a group alone writes nothing"),
        ("cases:\n- {name: a, new: gone.yaml}\n", "gone.yaml: No such file or directory"),
        ("cases:\n- {name: a, new: shop.test.yaml}\n", "shop.test.yaml: one object is needed, 0 found"),
        ("cases:\n- {name: a, new: live.yaml, policy: gone.yaml}\n", "gone.yaml: No such file or directory"),
        ("cases:\n- {name: a, new: live.yaml, now: today}\n", '"today" is not an RFC 3339 time'),
        ("cases:\n- {name: a, review: live.yaml}\n", "live.yaml: not an AdmissionReview"),
        ("cases:\n- {name: a, new: {kind: Lease}}\n", "a Lease needs apiVersion"),
        ('cases:\n- {name: a, new: "a\\0b"}\n', "embedded null byte"),
        ("cases:\n- {name: a, expct: {}}\n", 'cases[0]: unknown key "expct"; did you mean "expect"?'),
        ("cases:\n- {name: 1}\n", "cases[0].name: must be a string, not an integer"),
        ("cases:\n- {name: a, new: live.yaml, expect: {allowed: true, rules: {x: no}}}\n", "rules"),
        ("{}", "cases must be set"),
        ("kind: List\n", 'unknown key "kind"'),
        ("", "the file is empty"),
        ("a: [", "line"),
        ("cases: []\n---\ncases: []\n", "only one document is allowed"),
        ("cases: [" * 2000, "nested deeper than 200 levels"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_file_or_a_case(file: str, error: str, run: Run) -> None:
    code, out, err = run(file=file)
    assert (code, error in " ".join(out.split())) == (2, True), out
    assert "bug" not in err
    code, out, _ = run(".", "--format", "json")
    assert code == 2
    assert error in json.loads(out)["error"]


def test_no_case_is_an_error(run: Run) -> None:
    assert run() == (2, "", "lease-webhook: no case found; test files end in .test.yaml or .test.yml\n")
    assert run(file="cases: []\n")[0] == 2
    assert run("gone.test.yaml")[0] == 2


def test_json_of_each_case(run: Run) -> None:
    code, out, _ = run(".", "--format", "json", file=SHOP.replace("allowed: false", "allowed: true"))
    failed, passed = map(json.loads, out.splitlines())
    assert code == 1
    assert (failed["source"], failed["passed"], failed["actual"]["allowed"]) == ("shop.test.yaml:7", False, False)
    assert failed["differences"] == ["allowed: expected true, got false"]
    assert passed["expected"] == passed["actual"] == {"allowed": True, "event": "takeover", "rules": {}}


def test_junit_and_sarif(run: Run) -> None:
    file = SHOP.replace("allowed: false", "allowed: true")
    code, out, _ = run(".", "--format", "junit", file=file)
    suites = ET.fromstring(out)
    assert (code, suites.get("tests"), suites.get("failures")) == (1, "2", "1")
    code, out, _ = run(".", "--format", "sarif")
    document: dict[str, Any] = json.loads(out)
    VALIDATOR.validate(document)
    (found,) = document["runs"][0]["results"]
    assert (code, found["ruleId"]) == (1, "expectation")
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}


PIECES = ["", "- ", "&a ", "*a", *"\n {}[]:!'\"\t\x00\ud7ff|~x"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(chance=st.randoms(use_true_random=False), output=st.sampled_from(["text", "json", "junit", "sarif"]))
def test_no_file_gives_a_traceback(chance: random.Random, output: str, run: Run) -> None:
    text = list(SHOP)
    for _ in range(chance.randrange(1, 8)):
        place = chance.randrange(len(text))
        text[place : place + chance.randrange(3)] = chance.choice(PIECES)
    code, out, err = run(".", "--format", output, file="".join(text))
    assert code in {0, 1, 2}
    assert "bug" not in err
    if output == "junit" and out:
        ET.fromstring(out)
