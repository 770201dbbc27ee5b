"""A topic that checks nothing has not passed, and what was not run is not published."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from lab.cluster import __main__ as cluster
from lab.cluster import table as cluster_table
from lab.e2e import __main__ as e2e
from lab.e2e import table
from lab.e2e.api_client import Reply
from lab.e2e.fence import stall
from lab.e2e.fence.token import Bench
from lab.e2e.threads import run_threads
from lab.e2e.toolchain import VERSIONS
from lab.e2e.topic_list import Topic
from lab.e2e.topics import elections, harmless, policies, stamp_arsenal, static_manifests, token
from lab.e2e.world import Row, World, list_not_run, make_absent_row
from webhook.admission.policy.file import load

VERSION = "v1.31.4"
PASSED = Row("a claim", "as it must be", passed=True)
NOT_RUN = Row("the elections", "Java is not installed", passed=True, was_run=False)
PATIENCE = 1000


def make_world(**parts: Any) -> World:
    plane = SimpleNamespace(binaries=SimpleNamespace(version=VERSION, minor=31))
    return cast("World", SimpleNamespace(plane=plane, **parts))


def yield_nothing(_: object) -> Iterator[Row]:
    yield from ()


def raise_error(*_: object, **__: object) -> Any:
    raise RuntimeError("HTTP 500: etcdserver: no leader")


def test_a_topic_without_a_row_has_failed() -> None:
    rows = e2e._run_topic(make_world(), Topic("harmless", "What others write", yield_nothing, "metadata"))
    assert [row.passed for row in rows] == [False]
    assert not e2e._has_passed([])


def test_a_check_in_pods_without_a_row_has_failed() -> None:
    rows: list[Row] = []
    cluster._run("installed", yield_nothing, cast("Any", None), rows)
    assert [row.passed for row in rows] == [False]


def test_a_row_is_all_that_a_topic_needs() -> None:
    rows = e2e._run_topic(make_world(), Topic("harmless", "What others write", lambda _: iter([PASSED]), "metadata"))
    assert rows == [PASSED]
    assert e2e._has_passed(rows)


@pytest.mark.parametrize("topic", [harmless, stamp_arsenal, static_manifests, token])
def test_a_topic_says_on_which_version_there_is_nothing_of_it(topic: Any) -> None:
    assert [(row.observation, row.passed) for row in topic.run(make_world())] == [(f"not in {VERSION}", True)]


def test_the_table_says_on_which_version_there_is_nothing_of_a_topic() -> None:
    page = table.render(
        {"v1.37.1": {"harmless": [PASSED]}, VERSION: {"harmless": [make_absent_row("stamps", VERSION)]}}
    )
    assert f"| stamps | v1.37.1: not served<br>{VERSION}: not in {VERSION} |" in page


def test_nothing_to_run_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e2e, "build_all_binaries", lambda *_: [SimpleNamespace(version=VERSION)])
    assert e2e.main(["--only", "kubectl", "--without", "kubectl"]) == 1


def test_elections_are_not_compared_with_the_specification_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert elections._check_behaviors([]).mark == "NOT RUN"


@pytest.mark.parametrize(
    ("row", "mark"),
    [
        pytest.param(PASSED, "ok", id="observed"),
        pytest.param(Row("a claim", "another", passed=False), "FAILED", id="observed otherwise"),
        pytest.param(NOT_RUN, "NOT RUN", id="not observed"),
    ],
)
def test_a_row_is_marked_by_what_was_observed(row: Row, mark: str) -> None:
    assert row.mark == mark


def test_tables_mark_what_was_not_run() -> None:
    assert "| the elections | **NOT RUN** Java is not installed |" in table.render({VERSION: {"elections": [NOT_RUN]}})
    assert "| the elections | **NOT RUN** Java is not installed |" in cluster_table.render({"installed": [NOT_RUN]})


@pytest.mark.parametrize(
    ("row", "stored"),
    [
        pytest.param(PASSED, True, id="everything was run"),
        pytest.param(Row("a claim", "another", passed=False), True, id="something failed"),
        pytest.param(NOT_RUN, False, id="something was not run"),
    ],
)
def test_a_run_without_all_of_it_is_not_stored(
    row: Row, stored: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[object] = []
    versions = [SimpleNamespace(version=version) for version in VERSIONS]
    monkeypatch.setattr(e2e, "build_all_binaries", lambda *_: versions)
    monkeypatch.setattr(e2e, "_describe_programs", lambda _: "")
    monkeypatch.setattr(e2e, "_prove_all", lambda *_: {one.version: {"elections": [row]} for one in versions})
    monkeypatch.setattr(e2e, "write", written.append)
    assert e2e.main([]) == (0 if row.passed else 1)
    assert bool(written) == stored
    assert ("Java is not installed" in capsys.readouterr().err) == (not stored)


@pytest.mark.parametrize("only", [(), ("installed",)], ids=["all checks", "one check"])
@pytest.mark.parametrize(("row", "stored"), [(PASSED, 1), (NOT_RUN, 0)], ids=["run", "not run"])
def test_what_was_not_run_in_pods_is_not_stored(
    row: Row, stored: int, only: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[object] = []
    monkeypatch.setattr(cluster, "publish", lambda *rows, **_: written.append(rows))
    monkeypatch.setattr(cluster, "replace_rows", lambda *rows: written.append(rows))
    client = SimpleNamespace(get=lambda _: {"gitVersion": VERSION})
    world = SimpleNamespace(client=client, kubectl=SimpleNamespace(run=lambda *_: None), remove=lambda: None, ours=True)
    options = cast("Any", SimpleNamespace(only=only, short=False, image=""))
    assert cluster._report(cast("Any", world), {"installed": lambda _: iter([row])}, options) == 0
    assert len(written) == stored


def test_what_was_not_run_is_listed_with_its_reason() -> None:
    assert list_not_run({"a": [PASSED], "b": [NOT_RUN]}) == ["the elections: Java is not installed"]


class FakeLease:
    """A lease whose writes are all stored, until nobody can have wanted so many."""

    count = 0

    def __init__(self, *_: object) -> None: ...

    def create(self, **_: object) -> Reply:
        return Reply(201, {}, (), "", 0.0)

    def put(self, *_: object, **__: object) -> Reply:
        FakeLease.count += 1
        assert FakeLease.count < PATIENCE, "renews for ever"
        return Reply(200, {}, (), "", 0.0)

    renew_by_patch = put


@pytest.mark.parametrize("broken", ["_remove", "_install"])
def test_policies_that_cannot_be_changed_are_a_problem_and_end_the_renewals(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeLease.count = 0
    monkeypatch.setattr(policies, "OneLease", FakeLease)
    for name in ("_remove", "_install"):
        monkeypatch.setattr(policies, name, raise_error if name == broken else lambda *_, **__: None)
    monkeypatch.setattr("time.sleep", lambda _: None)
    world = make_world(create_account=lambda *_: SimpleNamespace(client=None))
    row = policies._check_coming_and_going(world, "policies", load(None))
    assert not row.passed
    assert "HTTP 500" in row.observation


class StalledBench:
    """A bench whose client stores everything, but no lease."""

    plane = SimpleNamespace(port=1, second_port=2, third_port=3)
    operator = SimpleNamespace(log="/configmaps/log")
    write_lease = raise_error

    def create_pod_client(self, *_: object) -> Self:
        return self

    def send(self, method: str, *_: object, **__: object) -> Reply:
        return Reply(201 if method == "POST" else 200, {"metadata": {"resourceVersion": "1"}}, (), "", 0.0)


def count_threads() -> int:
    return threading.active_count()


def test_no_writer_outlives_a_takeover_that_fails() -> None:
    before = count_threads()
    with pytest.raises(RuntimeError, match="etcdserver"):
        stall._play_takeover(cast("Bench", StalledBench()), "op-a", "op-b", 0, 0.1)
    assert count_threads() == before


@pytest.mark.parametrize("failing", ["the block", "a thread"])
def test_threads_end_with_their_block_and_an_error_is_raised(failing: str) -> None:
    stop = threading.Event()
    before = count_threads()

    def wait() -> None:
        stop.wait()

    thread, block = (raise_error, lambda: None) if failing == "a thread" else (wait, raise_error)
    with pytest.raises(RuntimeError, match="etcdserver"), run_threads(stop, thread, wait):
        block()
    assert stop.is_set()
    assert count_threads() == before


def test_threads_that_succeed_raise_nothing() -> None:
    stop, done = threading.Event(), list[bool]()
    with run_threads(stop, lambda: done.append(stop.wait(5))):
        assert done == []
    assert done == [True]
