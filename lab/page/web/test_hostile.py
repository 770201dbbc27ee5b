"""Hostile files: all of their content is text; too much of it ends with a sentence, and the page goes on."""

import gzip
import json
from pathlib import Path

import pytest

from lab.page.web.conftest import Start
from lab.page.web.served import Web
from lab.page.web.test_views import LOG, check_views
from tests.factories import make_lease, make_review, put
from tests.timeline.election_samples import HOSTILE_NAMES
from webhook.admission.policy.file import DEFAULT_PRESET
from webhook.browser.reviewing import make_preset_files
from webhook.text.quoting import escape

LISTED = [name for name in HOSTILE_NAMES if "\ud800" not in name]
"""Names for the items of a List; API servers send no JSON with half of a surrogate pair."""
ELEMENTS = "() => [...new Set([...document.querySelectorAll('*')].map((e) => e.localName))]"
KEYUP = """(area) => {
    const began = performance.now();
    area.dispatchEvent(new Event("keyup"));
    return performance.now() - began;
}"""
RUNS = "document.querySelectorAll('main img, main script, main a[href^=\"javascript\"], [onerror], [onclick]').length"


def make_hostile_list() -> bytes:
    """Return leases with hostile names, holders and annotations, some of which no API server would store."""
    items = [
        make_lease(
            put("metadata.name", name), put("spec.holderIdentity", name), put("metadata.annotations", {name: name})
        )
        for name in LISTED
    ]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()


def test_no_name_becomes_an_element_or_runs_in_any_view(web: Web) -> None:
    web.open(LOG)
    check_views(web)
    before = set(web.page.evaluate(ELEMENTS))
    web.open({"name": "<img src=x onerror=alert(1)>.json", "mimeType": "", "buffer": make_hostile_list()})
    check_views(web)
    for row in range(len(LISTED)):
        web.show("why")
        web.page.locator("#leases button.link").nth(row).click()
        web.page.wait_for_selector("#account h3")
    assert set(web.page.evaluate(ELEMENTS)) - before <= {"input"}
    assert web.page.evaluate(RUNS) == 0
    assert "<img src=x onerror=alert(1)>.json" in web.read_text("#recognized")


def test_names_are_shown_with_what_is_hidden_escaped(web: Web) -> None:
    web.open({"name": "leases.json", "mimeType": "", "buffer": make_hostile_list()})
    web.show("why")
    text = web.page.evaluate("document.getElementById('leases').textContent")
    assert text == escape(text)
    assert "<script>alert(1)</script>" in text


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_review_with_hostile_names(web: Web, name: str) -> None:
    new = make_lease(put("spec.holderIdentity", name), put("spec.leaseDurationSeconds", -1))
    text = json.dumps(make_review(put("request.userInfo.username", name), new=new))
    web.show("review")
    web.page.fill("#object", "")
    web.page.click("#policy-of-review button:text-is('strict')")
    web.page.fill("#object", text)
    web.page.wait_for_selector("#verdicts .card")
    assert web.page.evaluate(RUNS) == 0


def test_a_small_file_that_unpacks_to_much_ends_with_the_command_to_use(web: Web, tmp_path: Path) -> None:
    line = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","padding":"' + b"a" * 1_000_000 + b'"}\n'
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(400):
            file.write(line)
    web.open(bomb)
    assert web.error.endswith("lease-webhook why --input bomb.gz")
    web.open(LOG)
    check_views(web)


def test_what_ends_python_is_said_and_it_begins_again(web: Web) -> None:
    deep = b'{"apiVersion":"v1","kind":"Pod","spec":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    web.open({"name": "deep.json", "mimeType": "", "buffer": deep})
    assert web.error
    web.open(LOG)
    check_views(web)
    # Whatever the browser prints of the end of a program is its own.
    web.messages.clear()


def test_reading_can_be_stopped(web: Web, tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    log.write_bytes(gzip.decompress(LOG.read_bytes()) * 1000)
    web.clear()
    web.page.set_input_files("#files", log)
    web.page.click("#stop")
    web.open(LOG)
    assert web.read_text("#recognized") == "audit.log.gz: an audit log"


def test_stop_while_python_starts_costs_neither_policy_nor_presets(start: Start) -> None:
    web = start()
    web.page.set_input_files("#files", LOG)
    web.page.click("#stop")
    web.show("review")
    web.page.wait_for_selector("#policy-of-review button:text-is('strict')")
    assert web.error == ""
    web.open(LOG)
    check_views(web)
    assert web.page.input_value("#check-policy") == make_preset_files()[DEFAULT_PRESET]


def test_stop_while_python_starts_does_not_cost_the_verdict(start: Start) -> None:
    web = start(address="/#view=review")
    web.page.fill("#object", json.dumps(make_review(new=make_lease(put("spec.leaseDurationSeconds", -1)))))
    web.page.click("#stop")
    web.page.wait_for_selector("#verdicts .card")


@pytest.mark.parametrize("last", ["", "\nrules:"], ids=["at the cursor", "above the cursor"])
def test_a_long_line_of_blanks_in_a_policy_does_not_freeze_the_page(web: Web, last: str) -> None:
    web.show("review")
    web.page.fill("#object", "")
    web.page.fill("#review-policy", " " * 100_000 + "x" + last)
    assert web.page.eval_on_selector("#review-policy", KEYUP) < 1000
