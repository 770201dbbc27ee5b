"""docs/torture.md shows what was stored, and the laws notice what is changed in a stored history."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lab.spec.stamped_traces import StampedVersion, Tenures, corrupt_stamps
from lab.torture import __main__ as torture
from lab.torture import laws
from lab.torture.history import Attack, Denial, Gap, History, StoredVersion, read_history
from tools.circumstances import Circumstances
from webhook.kubernetes.times import SECOND, format_micro_time, format_time

FIGURES = ("seconds", "leaderless reviewed", "leaderless stamped")
FILE = Path(__file__).parents[2] / "tests" / "data" / "torture" / "seed-11.json.gz"


@pytest.fixture(scope="module")
def history() -> History:
    return read_history(FILE)


def change_history(history: History, name: str, change: Callable[[dict[str, Any]], None]) -> History:
    """Return the history with a change in the last version of a lease or of the shared object that exists."""
    versions = history.logs if name == "log" else history.leases[name]
    place = max(number for number, one in enumerate(versions) if one.object)
    last = copy.deepcopy(versions[place].object)
    assert last is not None
    change(last)
    other = [*versions[:place], StoredVersion(versions[place].revision, last), *versions[place + 1 :]]
    return replace(history, logs=other) if name == "log" else replace(history, leases={**history.leases, name: other})


def lower(document: dict[str, Any]) -> None:
    """Set every term and every token of an object to one."""
    annotations = document["metadata"]["annotations"]
    for key in annotations:
        if "/term-" in key or "/token-" in key:
            annotations[key] = "000000000000000001"


def test_a_history_keeps_the_laws(history: History) -> None:
    assert [trace.name for trace in laws.list_reviewed_traces(history) if not trace.allowed] == []
    problems = [
        *laws.find_falling_terms(history),
        *laws.find_interleaved_writes(history),
        *laws.find_unstamped_writes(history),
    ]
    assert [*problems, *laws.find_losses(history), *laws.find_denied_renewals(history)] == []
    assert len(list(laws.list_stamped_traces(history))) > 0


@pytest.mark.parametrize("name", ["log", laws.STAMPED])
def test_a_term_that_falls_is_noticed(history: History, name: str) -> None:
    assert len(list(laws.find_falling_terms(change_history(history, name, lower)))) > 0


def test_a_write_of_an_earlier_tenure_is_noticed(history: History) -> None:
    def make_stale(document: dict[str, Any]) -> None:
        document["data"]["entry"] = "stamped-9-client-go/1"

    assert len(list(laws.find_interleaved_writes(change_history(history, "log", make_stale)))) == 1


def test_a_holder_who_did_not_wait_is_noticed(history: History) -> None:
    def steal(document: dict[str, Any]) -> None:
        document["spec"]["holderIdentity"] = "mallory"

    traces = list(laws.list_reviewed_traces(change_history(history, laws.REVIEWED, steal)))
    assert [trace.allowed for trace in traces].count(False) == 1


def test_an_owner_of_a_held_lease_is_noticed(history: History) -> None:
    def own(document: dict[str, Any]) -> None:
        document["metadata"]["ownerReferences"] = [{"uid": "1"}]

    assert len(list(laws.find_losses(change_history(history, laws.REVIEWED, own)))) == 1


@pytest.mark.parametrize("field", ["f:metadata", "f:spec"])
def test_a_label_does_not_make_a_deleted_lease_live(history: History, field: str) -> None:
    def make_entry(manager: str, seconds: int, owned: dict[str, Any]) -> dict[str, Any]:
        return {"manager": manager, "time": format_time(history.begin + seconds * SECOND), "fieldsV1": owned}

    renewal: dict[str, Any] = {"f:spec": {"f:renewTime": {}}}
    later = make_entry("mallory", 9, {field: {"f:renewTime": {}}})
    lease = {
        "metadata": {"managedFields": [make_entry("elector", 0, renewal), later]},
        "spec": {"holderIdentity": "reviewed-0-go", "leaseDurationSeconds": 6},
    }
    attack = Attack(history.begin + 10 * SECOND, "reviewed", "delete", 200)
    changed = replace(
        history, leases={laws.REVIEWED: [StoredVersion(1, lease), StoredVersion(2, None)]}, attacks=[attack]
    )
    assert len(list(laws.find_losses(changed))) == (field == "f:spec")


def test_a_stamp_that_is_missing_is_noticed(history: History) -> None:
    def strip(document: dict[str, Any]) -> None:
        document["metadata"]["annotations"] = {}

    assert len(list(laws.find_unstamped_writes(change_history(history, laws.STAMPED, strip)))) == 1


@pytest.mark.parametrize("gaps", [[], [Gap(2, 3, "later")]], ids=["policies in force", "policies being removed"])
@pytest.mark.parametrize("writer", ["elector", laws.ATTACKER])
def test_who_renews_for_another_one_is_not_denied_as_that_one(history: History, writer: str, gaps: list[Gap]) -> None:
    """Once the lease has expired, the attacker may renew it in the name of its holder, who is denied then."""
    holder = next(name for name, ahead in history.offsets.items() if name.startswith("stamped") and not ahead)

    def make_version(revision: int, seconds: int, user: str) -> StoredVersion:
        at = format_micro_time(history.begin + seconds * SECOND)
        annotations = {f"lease-webhook/writer-{history.suffix}": f"uid system:serviceaccount:stamped:{user}"}
        spec = {"holderIdentity": holder, "renewTime": at}
        return StoredVersion(revision, {"metadata": {"annotations": annotations}, "spec": spec})

    versions = [make_version(1, 0, "elector"), make_version(2, 10, "elector"), make_version(3, 30, writer)]
    denial = Denial(history.begin + 20 * SECOND, "stamped", holder.partition("_")[0], "update", "")
    changed = replace(history, gaps=gaps, leases={laws.STAMPED: versions}, denials=[denial])
    assert len(list(laws.find_denied_renewals(changed))) == (writer == "elector")


@pytest.mark.parametrize(("duration", "seconds", "is_live"), [(6, 4, True), (6, 5, False), (1, 0, True), (1, 1, False)])
def test_another_writer_is_corrupt_only_while_the_lease_is_live(duration: int, seconds: int, *, is_live: bool) -> None:
    first = StampedVersion(at=100, before=2, holder="a", duration=duration, writer="a", written=100, term=2)
    last = replace(first, at=100 + seconds, before=5, written=100 + seconds)
    copies = corrupt_stamps([Tenures("trace", (first, first, first, last))])
    assert [one.name for one in copies if "another writer" in one.name] == ["trace, another writer"] * is_live


def keep_one(history: History, lease: str) -> dict[str, list[StoredVersion]]:
    """Return the leases of a history, one of them as it was first renewed."""
    first = next(number for number, one in enumerate(history.leases[lease]) if one.object and one.object["spec"])
    return {**history.leases, lease: history.leases[lease][: first + 1]}


@pytest.mark.parametrize(
    ("idle", "problem"),
    [
        pytest.param(lambda old: replace(old, faults=[]), "faults", id="faults"),
        pytest.param(lambda old: replace(old, operations=[]), "register operations that were answered", id="registers"),
        pytest.param(
            lambda old: replace(old, operations=[replace(one, result="unknown") for one in old.operations]),
            "register operations that were answered",
            id="answers of registers",
        ),
        pytest.param(lambda old: replace(old, logs=[]), "writes of leaders", id="writes of leaders"),
        pytest.param(
            lambda old: replace(old, attacks=[one for one in old.attacks if one.namespace == "stamped"]),
            "attacks in reviewed that were answered",
            id="attacks on one of the leases",
        ),
        pytest.param(
            lambda old: replace(
                old, attacks=[replace(one, status=503) if one.namespace == "stamped" else one for one in old.attacks]
            ),
            "attacks in stamped that were answered",
            id="answers to attacks",
        ),
        pytest.param(
            lambda old: replace(old, leases=keep_one(old, laws.REVIEWED)),
            f"renewals of {laws.REVIEWED}",
            id="renewals of one of the leases",
        ),
    ],
)
def test_a_run_in_which_something_never_happened_has_a_problem(
    history: History, idle: Callable[[History], History], problem: str
) -> None:
    assert list(laws.find_idle(history)) == []
    assert list(laws.find_idle(idle(history))) == [f"the run has no {problem}"]
    assert list(laws.find_idle(replace(idle(history), end=history.begin + 30 * SECOND))) == []


def test_a_run_in_which_nothing_happened_is_not_ok(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "find_not_linearizable", lambda *_: [])
    nothing = replace(history, faults=[], operations=[], logs=[], attacks=[], denials=[])
    assert laws.check_history(history, Path(), None).problems == ()
    assert "the run has no faults" in laws.check_history(nothing, Path(), None).problems


@pytest.mark.parametrize("missing", [(), ("java",), ("TLC",)], ids=["nothing", "the elector in Java", "TLC"])
def test_a_run_that_lacks_something_says_so_and_is_not_stored(
    missing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torture, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(torture, "write_between", lambda *_: None)
    stored = torture.Result(
        1, True, missing, laws.Verdict((), {"seconds": 1.0}), (), Circumstances("", "2026-01-01", "")
    )
    torture._is_mentioned("seed-1", stored)
    assert capsys.readouterr().out.startswith(f"ok seed-1{f', without {missing[0]}' if missing else ''}\n")
    complete = replace(stored, missing=(), verdict=laws.Verdict((), dict.fromkeys(FIGURES, 1.0)))
    torture.write([replace(complete, missing=missing)])
    assert torture.read_stored() == ([] if missing else [complete])
    assert ("is not stored" in capsys.readouterr().err) == bool(missing)


@pytest.mark.parametrize(
    ("gone", "packages", "missing"),
    [
        pytest.param((), Path(), (), id="nothing"),
        pytest.param((), None, ("TLC",), id="TLC"),
        pytest.param(("reviewed-3-java", "reviewed-4-rust"), Path(), ("java", "rust"), id="two languages"),
        pytest.param(("stamped-0-client-go_4b1c",), Path(), ("client-go",), id="a controller"),
    ],
)
def test_a_history_shows_which_electors_were_left_out(
    history: History, gone: tuple[str, ...], packages: Path | None, missing: tuple[str, ...]
) -> None:
    offsets = {name: ahead for name, ahead in history.offsets.items() if name not in gone}
    assert torture.list_missing(replace(history, offsets=offsets), packages) == missing


def test_every_stored_run_had_all_electors_and_tlc() -> None:
    assert [one.seed for one in torture.read_stored() if one.missing] == []


def test_the_page_shows_the_runs() -> None:
    assert torture.render_table(torture.read_stored()) in torture.PAGE.read_text(encoding="utf-8")


def test_no_run_broke_a_law() -> None:
    assert [one.seed for one in torture.read_stored() if one.protected and one.verdict.problems] == []
