"""Each view with each kind of input, compared with the command."""

import gzip
import json
from pathlib import Path

import pytest

from lab.page.web.conftest import Start
from lab.page.web.served import ROOT, Web
from tests.factories import make_candidate, make_lease, put
from webhook.admission.policy.parse import parse
from webhook.browser.reviewing import make_preset_files
from webhook.browser.session import Session

DATA = ROOT / "tests/data"
INCIDENT = DATA / "incidents/lease-stolen"
LOG, WATCH = INCIDENT / "audit.log.gz", INCIDENT / "leases.json.gz"
LEASE = "invoices/invoices"
INPUTS = {
    "an audit log": [LOG],
    "a watch": [WATCH],
    "an audit log, a watch": [LOG, WATCH],
    "objects as they are stored": [DATA / "leases/seeded.json"],
}
HOLD = """() => {
    const { postMessage } = Worker.prototype;
    window.held = [];
    Worker.prototype.postMessage = function (...given) { window.held.push(() => postMessage.apply(this, given)); };
    window.release = () => {
        Worker.prototype.postMessage = postMessage;
        for (const send of window.held) send();
    };
}"""
"""Keep what the page asks Python until `release`, as if Python were busy."""
ASKED = """async (count) => {
    while (window.held.length < count) await new Promise((resolve) => setTimeout(resolve, 20));
}"""
ENVELOPES = sorted((DATA / "envelopes").glob("*.gz"))


def check_views(web: Web) -> None:
    """Go through all views of the open file, and check that each shows something and nothing failed."""
    web.show("why")
    web.page.click("#leases tbody tr:first-child button.link")
    web.page.wait_for_selector("#account h3")
    web.show("audit")
    web.page.wait_for_selector("#audit h2")
    web.show("timeline")
    web.timeline.locator(".lane").first.wait_for()
    web.show("check")
    web.page.wait_for_selector("#checked h2")
    assert web.error == ""


@pytest.mark.parametrize("kinds", INPUTS)
def test_every_view_of_each_kind_of_input(web: Web, kinds: str) -> None:
    web.open(*INPUTS[kinds])
    assert kinds == ", ".join(one.partition(": ")[2] for one in web.page.locator("#recognized li").all_inner_texts())
    check_views(web)


@pytest.mark.parametrize("file", ENVELOPES, ids=lambda file: file.name)
def test_a_log_as_log_services_deliver_it(web: Web, file: Path) -> None:
    web.open(file)
    assert "an audit log" in web.read_text("#recognized")


def test_why_shows_what_the_command_finds(web: Web) -> None:
    web.open(LOG, WATCH)
    account = Session([str(LOG), str(WATCH)]).explain_lease(LEASE)
    web.show("why")
    web.page.click(f"#leases button.link:text-is('{LEASE}')")
    web.page.wait_for_selector(f"#account h2:has-text('{LEASE}')")
    view = web.read_text("#account")
    texts = [account["headline"], account["advice"]["sentence"], account["findings"][0]["message"]]
    assert all(text in view for text in texts)


def test_a_copy_for_a_ticket_has_what_is_shown(web: Web) -> None:
    web.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    web.open(LOG, WATCH)
    account = Session([str(LOG), str(WATCH)]).explain_lease(LEASE)
    web.show("why")
    web.page.click(f"#leases button.link:text-is('{LEASE}')")
    web.page.click("#account button:text-is('Copy as text')")
    web.page.wait_for_selector("#account button:text-is('Copied')")
    lines = web.page.evaluate("navigator.clipboard.readText()").splitlines()
    found = account["findings"]
    wanted = [
        account["advice"]["sentence"],
        *(one["message"] for one in found),
        *(text for _, text in account["quoted"]),
    ]
    wanted += [f"-> {one['fix']}" for one in found if one["fix"] not in {"", account["advice"]["command"]}]
    assert [text for text in wanted if not any(line.endswith(text) for line in lines)] == []
    is_headed = any(line.startswith("What Events say") for line in lines)
    assert is_headed is bool(account["quoted"])


def test_each_finding_of_audit_is_a_click_from_its_lease(web: Web) -> None:
    web.open(LOG, WATCH)
    web.show("audit")
    first = web.page.locator("#audit .card").first
    assert "lease-stolen" in first.inner_text()
    first.locator("button.link").click()
    web.page.wait_for_selector(f"#account h2:has-text('{LEASE}')")


def test_the_timeline_and_why_lead_to_each_other(web: Web) -> None:
    web.open(LOG, WATCH)
    web.show("why")
    web.page.click("#leases button.link:text-is('relay/relay')")
    web.page.click("#account button:text-is('On the timeline')")
    assert "relay/relay" in web.timeline.locator("#details h2").inner_text()
    web.timeline.locator(".lane .label").first.click()
    web.page.click(f"#timeline button:text-is('Why: {LEASE}')")
    web.page.wait_for_selector(f"#account h2:has-text('{LEASE}')")


@pytest.mark.parametrize("policy", ["observe", "strict"])
def test_check_says_what_a_policy_denies(web: Web, policy: str) -> None:
    web.open(LOG, WATCH)
    web.show("check")
    web.page.click(f"#policy-of-check button:text-is('{policy}')")
    expected = Session([str(LOG), str(WATCH)]).check(parse(make_preset_files()[policy]))["summary"]
    web.page.wait_for_selector(f"#checked h2:text-is('{expected}')")


def test_a_policy_that_is_refused_has_a_line_in_check(web: Web) -> None:
    web.open(LOG)
    web.show("check")
    web.page.fill("#check-policy", "apiVersion: lease-webhook/v1\npreset: strickt\n")
    web.page.wait_for_selector("#check-policy-problem:has-text('line 2: preset')")
    assert web.read_text("#policy-of-check .numbers b") == "2"
    web.page.click("#policy-of-check button:text-is('strict')")
    web.page.wait_for_selector("#checked h2")


def test_more_than_one_file_and_plain_ones(web: Web) -> None:
    plain = gzip.decompress(LOG.read_bytes())
    web.open({"name": "-", "mimeType": "text/plain", "buffer": plain}, {"name": "-", "mimeType": "", "buffer": plain})
    assert web.read_text("#recognized").count("an audit log") == 2


def test_pasted_text_is_read_as_a_file(web: Web) -> None:
    watch = gzip.decompress(WATCH.read_bytes()).decode()
    web.clear()
    web.page.fill("#paste", watch)
    web.page.press("#paste", "Tab")
    web.page.wait_for_selector("#recognized li:has-text('pasted: a watch')")


def test_pasted_manifests_and_reviews_go_to_review(web: Web) -> None:
    for kind, document in (("Lease", make_lease()), ("LeaseCandidate", make_candidate())):
        web.page.fill("#paste", json.dumps(document))
        web.page.press("#paste", "Tab")
        web.page.wait_for_selector(f"#verdicts strong:has-text('{kind} ')")
    assert web.page.is_visible("#review")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "given is empty", id="an empty file"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "given is not text", id="a picture"),
        pytest.param(b"Error from server (Forbidden): no\n", "what kubectl answered", id="an error of kubectl"),
        pytest.param(b"Apache License\n", "given has no lease", id="another text"),
    ],
)
def test_files_without_a_lease_are_refused_with_what_they_are(web: Web, content: bytes, problem: str) -> None:
    web.open({"name": "given", "mimeType": "", "buffer": content})
    assert problem in web.error


def test_a_list_of_many_leases_is_searched(web: Web) -> None:
    items = [make_lease(put("metadata.name", f"lease-{number}")) for number in range(500)]
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    web.open({"name": "leases.json", "mimeType": "application/json", "buffer": text})
    web.show("why")
    assert web.page.locator("#leases tbody tr").count() == 200
    web.page.fill("#leases input", "lease-499")
    assert web.page.locator("#leases tbody tr").count() == 1


def test_examples_are_opened(web: Web) -> None:
    web.clear()
    web.page.select_option("#examples", label="A leader that was paused")
    web.page.wait_for_selector("#recognized li")
    names = ["leader-paused-audit.log.gz: an audit log", "leader-paused-leases.json.gz: a watch"]
    assert web.read_text("#recognized").splitlines() == names


def test_the_answer_to_an_earlier_policy_is_not_shown(start: Start) -> None:
    web = start()
    web.open(LOG, WATCH)
    web.show("check")
    web.page.wait_for_selector("#checked h2")
    web.page.evaluate(HOLD)
    for count, text in enumerate(("preset: bad", make_preset_files()["strict"]), 1):
        web.page.fill("#check-policy", text)
        web.page.evaluate(ASKED, count)
    web.page.evaluate("window.release()")
    expected = Session([str(LOG), str(WATCH)]).check(parse(make_preset_files()["strict"]))["summary"]
    web.page.wait_for_selector(f"#checked h2:text-is('{expected}')")
    assert not web.page.is_visible("#check-policy-problem")
