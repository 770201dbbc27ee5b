"""One write before a policy that can be changed."""

import json
from typing import Any

import pytest

from lab.page.web.conftest import Start
from lab.page.web.served import ROOT, Web
from webhook.browser.reviewing import make_preset_files, review
from webhook.cli.options import parse_moment

EXAMPLE = "Another namespace takes a live lease"
TAKEN, LIVE = ((ROOT / f"docs/examples/{name}-lease.yaml").read_text() for name in ("taken", "live"))
READ_CURL = """async () => {
    let text = "";
    for (let tries = 0; tries < 200 && !text.startsWith("curl "); tries += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        text = await navigator.clipboard.readText();
    }
    return text;
}"""


@pytest.fixture
def denied(web: Web) -> Web:
    """The page with an example that standard and strict deny."""
    web.clear()  # else the verdict of the test before may be taken for this one
    web.page.select_option("#examples", label=EXAMPLE)
    web.page.wait_for_selector("#verdicts .card.denied")
    return web


def evaluate(web: Web) -> dict[str, Any]:
    """Return the texts that the page shows, by the function itself."""
    text, policy, at = (web.page.input_value(field) for field in ("#object", "#review-policy", "#at"))
    # The lease of an example expires: its verdict is of one instant.
    return review(text, policy, now=parse_moment(at) if at else None)[0]


def test_a_recorded_review_has_a_verdict_and_what_kubectl_prints(denied: Web) -> None:
    verdict = evaluate(denied)
    assert denied.read_text("#verdicts pre") == verdict["kubectl"]
    for finding in verdict["findings"]:
        assert finding["detail"] in denied.read_text("#verdicts table")


def test_another_preset_changes_the_verdict(denied: Web) -> None:
    denied.page.click("#policy-of-review button:text-is('observe')")
    denied.page.wait_for_selector("#verdicts .card.warned")
    denied.page.click("#policy-of-review button:text-is('strict')")
    denied.page.wait_for_selector("#verdicts .card.denied")


def test_an_example_that_is_chosen_while_python_starts_has_its_own_preset(start: Start) -> None:
    web = start()
    web.page.select_option("#examples", label=EXAMPLE)
    web.page.wait_for_selector("#verdicts .card.denied")
    assert web.page.input_value("#review-policy") == make_preset_files()["strict"]


def test_a_preset_replaces_a_policy_that_is_refused(denied: Web) -> None:
    denied.page.fill("#review-policy", "preset: strickt")
    denied.page.wait_for_selector("#review-policy-problem:has-text('line 1')")
    denied.page.fill("#object", "")
    denied.page.wait_for_selector("#verdicts:has-text('Paste')")
    denied.page.click("#policy-of-review button:text-is('strict')")
    denied.page.wait_for_selector("#review-policy-problem", state="hidden")


def test_an_empty_policy_is_refused(denied: Web) -> None:
    denied.page.fill("#review-policy", "")
    denied.page.wait_for_selector("#review-policy-problem:has-text('empty')")
    assert denied.read_text("#verdicts") == "The policy is refused: nothing is evaluated."
    denied.page.click("#policy-of-review button:text-is('strict')")


def test_an_edited_policy_changes_the_verdict_and_an_error_has_a_line(denied: Web) -> None:
    text = "apiVersion: lease-webhook/v1\npreset: strict\nrules:\n  takeover-before-expiry: {mode: dny}\n"
    denied.page.fill("#review-policy", text)
    denied.page.wait_for_selector("#review-policy-problem:has-text('line 4')")
    denied.page.fill("#review-policy", text.replace("dny", "off"))
    denied.page.wait_for_selector("#review-policy-problem", state="hidden")
    denied.page.wait_for_selector("#verdicts td:has-text('takeover-across-namespaces')")
    assert "takeover-before-expiry" not in denied.read_text("#verdicts table")


def test_the_schema_says_what_the_key_at_the_cursor_means(denied: Web) -> None:
    denied.page.fill("#review-policy", "apiVersion: lease-webhook/v1\npreset: strict\nrules:\n  lease-duration:\n")
    denied.page.press("#review-policy", "Control+End")
    denied.page.press("#review-policy", "ArrowLeft")
    assert denied.read_text("#review-policy-said").startswith("rules.lease-duration: ")
    denied.page.click("#policy-of-review .keys button:text-is('mode')")
    assert "mode: " in denied.page.input_value("#review-policy")


def test_the_page_of_a_rule_is_shown(denied: Web) -> None:
    denied.page.click("#verdicts button.link:text-is('takeover-before-expiry')")
    assert "How to fix" in denied.read_text("dialog[open]")
    denied.page.keyboard.press("Escape")
    denied.page.wait_for_selector("dialog[open]", state="detached")


def test_a_manifest_with_its_old_object_and_a_user(web: Web) -> None:
    web.show("review")
    web.page.fill("#at", "")
    web.page.fill("#object", TAKEN)
    web.page.evaluate("document.getElementById('of-manifest').open = true")
    web.page.fill("#old", LIVE)
    web.page.fill("#user", "system:serviceaccount:shop:checkout")
    web.page.click("#policy-of-review button:text-is('strict')")
    web.page.wait_for_selector("#verdicts .card.denied:has-text('by system:serviceaccount:shop:checkout')")


def test_copies_are_a_file_for_check_and_a_request(denied: Web) -> None:
    denied.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    denied.page.click("#verdicts button:text-is('Copy as a fixture')")
    denied.page.wait_for_selector("#verdicts button:text-is('Copied')")
    fixture = denied.page.evaluate("navigator.clipboard.readText()")
    assert json.loads(fixture) == json.loads(denied.page.input_value("#object"))
    denied.page.click("#verdicts button:text-is('Copy as curl')")
    curl = denied.page.evaluate(READ_CURL)
    assert curl.splitlines()[1:] == [fixture, "REVIEW"]


def test_what_is_no_review_is_said(web: Web) -> None:
    web.show("review")
    web.page.click("#policy-of-review button:text-is('strict')")
    web.page.fill("#object", "kind: Job\napiVersion: batch/v1\n")
    web.page.wait_for_selector("#verdicts .note:has-text('nothing here is a Lease')")


def test_a_broken_manifest_has_its_place(web: Web) -> None:
    web.show("review")
    web.page.fill("#object", "kind: Lease\nmetadata: [")
    web.page.wait_for_selector("#verdicts .card:has-text('line ')")
