"""Incidents whose truth was measured by their clients: nothing false is said, whatever the order of the input.

Each `truth.json` says what must be claimed (`need`, one of them), what is true as well, and what would be wrong
(`never`). Every client wrote a tick each 100 ms while its work ran, so that is known without looking at the lease.
"""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import asdict

from tests.factories import Document
from tests.history.observing import advise, input_of
from tests.incidents import at_metadata, in_three_files, instant
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.claims.presentation.text import Line, list_facts
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import Item
from webhook.findings import Severity

FOLDER: Final = Path("tests/data/measured-incidents")
NAMES: Final = sorted(path.name for path in FOLDER.iterdir())
LATEST: Final = 2**62
KEPT: Final = 4
"""Incidents that a process remembers; the tests of one come together (`tests/claims/conftest.py`)."""

EACH = pytest.mark.parametrize("name", NAMES)
EACH_SOURCE = pytest.mark.parametrize("source", ["watch", "log", pytest.param("three", marks=pytest.mark.slow), "both"])
"""The log in three files is read by slower runs: `make test` reads those of histories, in `tests/truth`."""


@cache
def truth(name: str) -> Document:
    document: Document = json.loads((FOLDER / name / "truth.json").read_text())
    return document


def text_of(name: str, file: str) -> bytes:
    return gzip.decompress((FOLDER / name / file).read_bytes())


@lru_cache(maxsize=KEPT)
def watch(name: str) -> tuple[Item, ...]:
    return tuple(read("watch", [text_of(name, "watch.jsonl.gz")]))


@lru_cache(maxsize=KEPT)
def log(name: str) -> tuple[Item, ...]:
    return tuple(read("log", [text_of(name, "audit.jsonl.gz")]))


@lru_cache(maxsize=KEPT)
def metadata(name: str) -> tuple[Item, ...]:
    return tuple(read("log", [at_metadata(text_of(name, "audit.jsonl.gz"))]))


def account(name: str, *inputs: list[Item] | tuple[Item, ...]) -> Account:
    histories = ClusterHistory()
    for item in Merged([input_of(items) for items in inputs], LATEST):
        histories.add(item)
    key = (truth(name)["namespace"], truth(name)["lease"])
    return make_account(
        histories, histories.leases[key], histories.bounds.until or instant(truth(name)["recorded_until"])
    )


SOURCES: Final[dict[str, Callable[[str], Account]]] = {
    "watch": lambda name: account(name, watch(name)),
    "log": lambda name: account(name, log(name)),
    "metadata": lambda name: account(name, metadata(name)),
    "three": lambda name: account(name, *in_three_files(log(name))),
    "both": lambda name: account(name, watch(name), log(name)),
}


@lru_cache(maxsize=KEPT * 5)
def explain_source(name: str, source: str) -> Account:
    """Return what is found in one source."""
    return SOURCES[source](name)


def print_account(name: str, answer: Account) -> str:
    lines: list[Line] = [*list_facts(answer), *list_events(answer)]
    text = " ".join([f"{answer.state} {make_headline(answer)}", *(f"{one.label} {one.text}" for one in lines)])
    text += " ".join(["", *(one.message for one in answer.findings), advise(answer)])
    text = re.sub(r"\s+", " ", text)
    return text.replace(truth(name)["namespace"], "NS").replace(truth(name)["lease"], "LEASE")


def claims(name: str, answer: Account) -> Callable[[str], bool]:
    checks = {term for one in answer.findings for term in (one.check, f"{one.check}/{_cause(one)}")}
    text = print_account(name, answer)
    is_clean = all(one.severity is Severity.INFO for one in answer.findings)

    def is_claimed(term: str) -> bool:
        if term == "clean":
            return is_clean
        kind, colon, value = term.partition(":")
        if colon:
            return answer.state == value if kind == "state" else re.search(value, text, re.I | re.S) is not None
        return term in checks

    return is_claimed


def _cause(finding: object) -> str:
    return finding.cause if isinstance(finding, Claim) else ""


def read_expected(name: str, source: str) -> Document:
    expectations: Document = truth(name)["expect"]["watch" if source == "watch" else "audit"]
    return expectations


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@EACH
def test_no_claim_about_a_measured_incident_is_false(name: str, source: str) -> None:
    answer, expect = explain_source(name, source), read_expected(name, source)
    is_claimed = claims(name, answer)
    assert [term for term in expect.get("never", ()) if is_claimed(term)] == []
    known = {term for kind in ("need", "half", "fine", "also") for term in expect.get(kind, ())}
    loud = [one for one in answer.findings if one.severity is not Severity.INFO]
    hint = f"if it is true, add it to `need` or `also` of {name}/truth.json in tests/data/measured-incidents"
    assert [one.check for one in loud if not {one.check, f"{one.check}/{_cause(one)}"} & known] == [], hint


@EACH_SOURCE
@EACH
def test_a_measured_incident_has_a_claim_that_names_it(name: str, source: str) -> None:
    answer, expect = explain_source(name, source), read_expected(name, source)
    is_claimed = claims(name, answer)
    assert any(is_claimed(term) for term in (*expect.get("need", ()), *expect.get("half", ()))) or expect.get("clean")


@EACH_SOURCE
@EACH
def test_the_holders_come_in_their_order(name: str, source: str) -> None:
    stored = [holder for holder in truth(name)["holders_stored"] if holder]
    holders = [one.holder for one in explain_source(name, source).history.tenures if one.holder]
    assert _drop_repetitions(holders) == _drop_repetitions(stored)


def _drop_repetitions(names: list[str]) -> list[str]:
    return [one for number, one in enumerate(names) if not number or names[number - 1] != one]


@EACH
def test_a_measured_time_without_a_leader_is_within_its_bound(name: str) -> None:
    for source in ("watch", "log"):
        tenures = explain_source(name, source).history.tenures
        for gap in truth(name)["leaderless"]:
            if gap["to"] is None or gap["seconds"] <= 1:
                continue
            end = instant(gap["to"])
            next_one = min(tenures, key=lambda tenure: abs(tenure.since - end))
            if next_one.leaderless is not None and abs(next_one.since - end) < 3_000_000:
                assert next_one.leaderless >= (gap["seconds"] - 0.6) * 1_000_000, (source, gap)


def variants(items: tuple[Item, ...], seed: int) -> Iterator[list[list[Item]]]:
    """The same input in another order, with duplicates and as several files."""
    chance = random.Random(seed)
    shuffled = list(items)
    chance.shuffle(shuffled)
    third = len(items) // 3
    yield [[*shuffled, *chance.sample(items, third)]]
    yield [shuffled[:third], shuffled[third : 2 * third], shuffled[2 * third :]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["log", *(pytest.param(one, marks=pytest.mark.deep) for one in ("watch", "metadata", "both"))]
)
@EACH
def test_no_order_no_duplicate_and_no_split_changes_what_is_known(name: str, source: str) -> None:
    items = {"watch": watch(name), "log": log(name), "metadata": metadata(name), "both": watch(name) + log(name)}[
        source
    ]
    known = _conclusion(explain_source(name, source))
    for inputs in variants(items, len(name)):
        assert _conclusion(account(name, *inputs)) == known


def _conclusion(answer: Account) -> Document:
    return {**make_account_json(answer), "tenures": [asdict(one) for one in answer.history.tenures]}
