"""A law: from a watch and an audit log together, `why` says at least what it says from each alone.

What the other input refutes is excepted, and `STRONGER` has what is said in its place.
"""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.claims import test_measured_incidents as measured
from tests.history.observing import merge_inputs
from tests.inputs.reading import read
from tests.truth.evaluation import evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.stored import play_stored
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.handover_clauses import describe_edit
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.follow import ClusterHistory

FOLDERS: Final = [Path("tests/data") / one for one in ("incidents", "further-incidents", "measured-incidents")]
NAMES: Final = sorted(str(path) for folder in FOLDERS for path in folder.iterdir())
FILES: Final = {"watch": ("watch.jsonl.gz", "leases.json.gz"), "log": ("audit.jsonl.gz", "audit.log.gz")}
EACH = pytest.mark.parametrize("alone", ["watch", "log"])
STRONGER: Final = {
    "holder-removed": {"foreign-release"},
    "renewal-late": {"holder-replaced"},
    "last-renewed": {"second-writer"},
    "identity-shared": {"second-writer"},
}
"""Claims of a watch that a log refutes, which shows processes: who removed a holder, and that it was another pod."""
LONG: Final = 10_000
MINIMUM: Final = 2


def found_in(name: str, *sources: str) -> Account:
    """Return what the inputs of an incident show of its lease."""
    folder = Path(name)
    if folder.parent == measured.FOLDER:
        return measured.explain_source(folder.name, "both" if len(sources) > 1 else sources[0])
    return _explain(folder, sources)


@lru_cache(maxsize=measured.KEPT * 3)
def _explain(folder: Path, sources: tuple[str, ...]) -> Account:
    histories = ClusterHistory()
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_bytes())
    paths = [next(folder / file for file in FILES[one] if (folder / file).exists()) for one in sources]
    for item in merge_inputs(*(read(path.name, [gzip.decompress(path.read_bytes())]) for path in paths)):
        histories.add(item)
    history = histories.leases[truth["namespace"], truth.get("lease") or truth["name"]]
    assert histories.bounds.until is not None
    return make_account(histories, history, histories.bounds.until)


def claims_of(answer: Account) -> set[str]:
    return {one["claim"] for one in make_account_json(answer)["claims"]}


def edits_of(answer: Account) -> list[str]:
    """Return the clause of an edit without its writer and its dating, which only one of two inputs may show."""
    bare = (
        replace(edit, writer=None, asked="", asker=None, manager="", is_dated=True, is_claimed=False)
        for edit in answer.history.edits
    )
    return [describe_edit(edit).partition("; no API server")[0] for edit in bare]


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("name", NAMES)
def test_no_claim_is_lost(name: str, alone: str) -> None:
    kept = claims_of(found_in(name, "log", "watch"))
    for lost in claims_of(found_in(name, alone)) - kept:
        assert STRONGER.get(lost, set()) & kept, lost


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_no_edit_is_lost(name: str, alone: str) -> None:
    """Neither of all that happened, nor of what is printed of it without --verbose."""
    single, both = found_in(name, alone), found_in(name, "log", "watch")
    everything = "\n".join(line.text for line in list_events(both, LONG))
    assert [text for text in edits_of(single) if text not in everything] == []
    latest = "\n".join(line.text for line in list_latest(both))
    printed = [text for text in edits_of(single) if any(text in line.text for line in list_latest(single))]
    assert [text for text in printed if text not in latest][MINIMUM:] == []
    assert len([text for text in edits_of(both) if text in latest]) >= min(MINIMUM, len(printed))


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_no_refusal_is_lost(name: str, alone: str) -> None:
    single, both = found_in(name, alone), found_in(name, "log", "watch")
    assert len(both.history.requests.refusals) >= len(single.history.requests.refusals)
    assert both.is_partial <= (single.is_partial or found_in(name, "log").is_partial)


def claims_of_a_stored_history(name: str, kind: Kind) -> dict[str, dict[str, Any]]:
    """Return what `why` claims of the first lease in a stored history, the last of each kind."""
    history = play_stored(name)
    given = input_of(history, kind)
    assert given
    return {one.id: one.claim for one in evaluate(history, given, ["why"]) if one.lease == "shop/checkout"}


def test_who_renews_is_no_second_writer_where_it_is_not_known_who_took_the_lease() -> None:
    claims = claims_of_a_stored_history("renewed-by-one-that-may-have-taken-it", Kind.SENT)
    assert "taken" in claims
    assert "second-writer" not in claims


def test_a_state_that_only_its_writer_dates_does_not_hide_who_asks() -> None:
    claims = claims_of_a_stored_history("a-candidate-asks-after-what-only-a-clock-that-is-ahead-dates", Kind.PATCHES)
    assert "expired" in claims
    assert "no-candidate" not in claims


def test_a_creation_made_the_first_state_of_a_lease_and_no_later_one() -> None:
    claims = claims_of_a_stored_history("a-creation-and-a-renewal-of-one-second-before-a-patch", Kind.PATCHES)
    assert claims["taken"]["how"] == "created"
    assert "lease-deleted" not in claims
