"""`audit`: formats, thresholds, exit codes, and inputs with a history."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import Document, drop, make_candidate, make_lease, put, to_bytes
from tests.history.fake_server import FakeServer, together
from tests.inputs.fake_kubectl import Install, fake
from webhook.cli.audit import MAX_EQUAL
from webhook.cli.main import main

__all__ = ["fake"]

NOW = "2025-11-20T12:00:04Z"
FROZEN = make_lease(put("spec.leaseTransitions", 2**31 - 1), put("metadata.name", "frozen"))
TIGHT = make_lease(put("metadata.name", "tight"), put("spec.leaseDurationSeconds", 5))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["audit", *words])
    out, err = capsys.readouterr()
    return code, out, err


def dump(path: Path, *items: Document) -> str:
    file = path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4))
    return str(file)


def test_a_healthy_dump_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--input", dump(tmp_path, make_lease(), make_candidate()), "--now", NOW)
    assert (code, err) == (0, "")
    assert out == "2 examined: 1 info\n1 below warning not shown: --severity info shows all\n"


def test_findings_in_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--input", dump(tmp_path, FROZEN), "--now", NOW)
    assert code == 1
    assert out.startswith("error    Lease shop/frozen  transitions-jump\n")
    assert "-> kubectl -n shop patch lease frozen --type=merge" in out


@pytest.mark.parametrize(
    ("item", "threshold", "code"),
    [
        (make_lease(), "warning", 0),
        (make_lease(), "info", 1),
        (TIGHT, "warning", 1),
        (TIGHT, "error", 0),
        (FROZEN, "error", 1),
    ],
)
def test_the_threshold(
    item: Document, threshold: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "--input", dump(tmp_path, item), "--now", NOW, "--fail-on", threshold)[0] == code


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path, FROZEN, TIGHT)
    code, out, err = run(capsys, "--input", path, "--now", NOW, "--format", "json")
    assert code == 1
    assert err == ""
    assert {(one["name"], one["check"], one["severity"]) for one in lines(out)} == {
        ("frozen", "transitions-jump", "error"),
        ("tight", "timing-tight", "warning"),
    }
    about = {"kind", "namespace", "name", "check", "claim", "severity", "message", "text", "fix", "source"}
    assert lines(out)[0].keys() == about


def test_what_cannot_be_read_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path, make_lease())
    Path(path).write_text(Path(path).read_text() + "[1,2,3,4,5,6,7,8]")
    code, out, err = run(capsys, "--input", path, "--now", NOW)
    assert code == 2
    assert out.startswith("1 examined")
    assert err
    assert run(capsys, "--input", "/dev/null")[0] == 2


def test_wrong_types_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--input", dump(tmp_path, make_lease(put("spec.leaseTransitions", "5"))), "--now", NOW)
    assert code == 1
    assert "object-types" in out


def test_pods_and_nodes_of_the_input_show_orphans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "other"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}}
    service = pod | {"kind": "Service"}
    path = dump(tmp_path, make_lease(), pod, node, service)
    _, out, _ = run(capsys, "--input", path, "--now", NOW, "--format", "json")
    assert "holder-gone" in {one["check"] for one in lines(out)}
    assert "; 1 skipped (Service 1)" in run(capsys, "--input", path, "--now", NOW)[1]


def test_hidden_managed_fields_are_noted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = make_lease(drop("metadata.managedFields"))
    code, _, err = run(capsys, "--input", dump(tmp_path, lease, lease), "--now", NOW)
    assert (code, err.count("--show-managed-fields")) == (0, 1)


def test_a_watch_tells_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    together(16, mail)
    server.elector("db-1", "shop/db").lead(20)
    server.events.append((server.now, "ADDED", make_candidate(put("spec.leaseName", "gone"))))
    server.delete("shop/mail")
    path = tmp_path / "watch.json"
    path.write_bytes(server.watch())
    code, out, _ = run(capsys, "--input", str(path), "--format", "json")
    assert code == 1
    findings = {(one["name"], one["check"]) for one in lines(out)}
    assert ("db", "leader-lost") in findings
    assert "3 examined" in run(capsys, "--input", str(path))[1]


@pytest.mark.parametrize("is_watched", [False, True], ids=["a list", "a watch"])
@pytest.mark.parametrize(
    ("words", "code", "examined"),
    [
        pytest.param((), 1, 3, id="all"),
        pytest.param(("-n", "shop"), 1, 1, id="one namespace"),
        pytest.param(("-n", "mall"), 0, 2, id="another"),
        pytest.param(("-n", "mall", "-A"), 1, 3, id="all, by name"),
        pytest.param(("-n", "gone"), 2, 0, id="one without leases"),
    ],
)
def test_a_namespace_selects_the_leases_of_an_input(
    words: tuple[str, ...],
    code: int,
    examined: int,
    is_watched: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = put("metadata.namespace", "mall")
    path = dump(tmp_path, FROZEN, make_lease(there), make_candidate(there), {"kind": "Pod", "metadata": {"name": "x"}})
    if is_watched:
        items = json.loads(Path(path).read_text())["items"]
        Path(path).write_text("".join(json.dumps({"type": "ADDED", "object": one}) + "\n" for one in items))
    result = run(capsys, "--input", path, "--now", NOW, *words)
    assert (result[0], f"{examined} examined" in result[1]) == (code, True)
    assert ("no lease and no candidate of namespace gone is in the input\n" in result[2]) == (not examined)


def test_kubectl_is_run(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    log = fake()
    assert run(capsys, "--fail-on", "error")[0] == 0
    assert "--all-namespaces" in log.read_text()
    code, out, err = run(capsys, "-n", "empty")
    assert (code, out) == (2, "")
    assert "namespace empty has no leases, or does not exist" in err
    run(capsys, "-n", "shop", "--with-pods")
    assert any(line.startswith("get pods --namespace=shop") for line in log.read_text().splitlines())


SEEDED = {
    ("ledger", "transitions-jump", "error"),
    ("copied", "duration-too-long", "error"),
    ("forged", "renewal-stamp-tampered", "error"),
    ("mail", "expired", "warning"),
    ("old", "abandoned", "warning"),
    ("queue", "holder-clock", "warning"),
    ("search", "lease-shared", "warning"),
    ("wiped", "lease-without-stamps", "warning"),
    ("payments", "candidate-strategy-conflict", "error"),
}
"""What is wrong in tests/data/leases/seeded.json, which was made for it; the others are healthy."""


def test_every_seeded_defect_is_found_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[1] / "data" / "leases" / "seeded.json"
    _, out, _ = run(capsys, "--input", str(path), "--now", NOW, "--format", "json")
    findings = {(one["name"], one["check"], one["severity"]) for one in lines(out) if one["severity"] != "info"}
    assert findings == SEEDED


@given(st.binary(max_size=300), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_noise_is_never_a_traceback(noise: bytes, seed: int) -> None:
    text = bytearray(to_bytes({"apiVersion": "v1", "kind": "List", "items": [FROZEN, make_candidate()]}))
    place = random.Random(seed).randrange(len(text))
    text[place : place + len(noise) // 4] = noise
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(text)
        file.flush()
        for command in (
            ["audit", "--input", file.name],
            ["why", "--input", file.name],
            ["audit", "--format", "json", "--input", file.name],
        ):
            assert main(command) in {0, 1, 2}


def test_a_name_that_no_api_server_stores_is_shown_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text(json.dumps(make_lease(put("metadata.name", "x" * 100_000))))
    _, out, _ = run(capsys, "--input", str(tmp_path / "x.json"))
    assert "Lease shop/xxx" in out
    assert len(out) < 10_000


@pytest.mark.parametrize(
    ("kind", "api_version", "skipped"),
    [
        pytest.param("Pod", "v1", "", id="a pod"),
        pytest.param("Node", "v1", "", id="a node"),
        pytest.param("Service", "v1", "; 1 skipped (Service 1)", id="a service"),
        pytest.param("Lease", "coordination.k8s.io/v2", "; 1 skipped (Lease v2 1)", id="a lease of an unknown version"),
    ],
)
def test_nothing_is_found_only_where_something_was_examined(
    kind: str, api_version: str, skipped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other"}}
    code, out, err = run(capsys, "--input", dump(tmp_path, other), "--now", NOW)
    assert (code, out) == (2, f"0 examined{skipped}\n")
    of_version = f" of {api_version}" if kind == "Lease" else ""
    place = f"other documents in {tmp_path / 'dump.json'} ({kind}{of_version} 1)"
    assert f"no lease and no candidate is in the input: {place}\n" in err


def test_heartbeats_of_other_projects_are_no_elections(capsys: pytest.CaptureFixture[str]) -> None:
    """Leases as Open Cluster Management, Gardener, its extensions and etcd-druid write them, silent for 20 minutes."""
    path = Path(__file__).parents[1] / "data" / "leases" / "heartbeats.json"
    main(["audit", "--input", str(path), "--now", "2026-11-24T12:00:00Z", "--format", "json"])
    by_name = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {name: (line["check"], line["severity"]) for name, line in by_name.items()} == dict.fromkeys(
        ("managed-cluster-lease", "aws-eu1", "etcd-main-0", "gardener-extension-heartbeat"),
        ("heartbeat-silent", "info"),
    ) | {"worker-1": ("expired", "warning")}
    assert 'its owner is "Seed aws-eu1"' in by_name["aws-eu1"]["message"]
    assert "leads" not in json.dumps([line["message"] + line["fix"] for line in by_name.values()])


@pytest.mark.parametrize("name", ["shop/checkout", "checkout", "x\x1b[31m" * 1000])
def test_a_lease_is_no_input(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, name)
    assert (code, out) == (2, "")
    assert "`why NAMESPACE/NAME`" in err
    assert len(err) < 1000


def many(path: Path, number: int) -> str:
    expired = [make_lease(put("metadata.name", f"old-{n}"), put("spec.renewTime", OLD)) for n in range(number)]
    return dump(path, *expired, FROZEN)


OLD = "2025-01-01T00:00:00.000000Z"


def test_errors_come_before_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--input", many(tmp_path, 2), "--now", NOW)
    severities = [line.split()[0] for line in out.splitlines() if line[0] in "ew"]
    assert severities == sorted(severities)
    assert set(severities) == {"error", "warning"}


def test_many_equal_findings_are_one_line_with_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = many(tmp_path, MAX_EQUAL + 1)
    _, out, _ = run(capsys, "--input", path, "--now", NOW)
    assert "warning  21 findings, such as Lease shop/old-0  " in out
    assert "old-1" not in out
    check = out.split("--check ")[1].split()[0]
    _, out, _ = run(capsys, "--input", path, "--now", NOW, "--check", check)
    assert all(f"shop/old-{number} " in out for number in range(MAX_EQUAL + 1))
    assert "frozen" not in out
    assert f"22 examined: {MAX_EQUAL + 1} warnings" in out


def test_few_equal_findings_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--input", many(tmp_path, MAX_EQUAL), "--now", NOW)
    assert "such as" not in out
    assert all(f"shop/old-{number} " in out for number in range(MAX_EQUAL))


def test_labels_and_names_select(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = make_lease(put("spec.leaseTransitions", 2**31 - 1), put("metadata.labels", {"team": "shop"}))
    path = dump(tmp_path, FROZEN, other)
    assert run(capsys, "--input", path, "--now", NOW, "-o", "name")[1] == "shop/checkout\nshop/frozen\n"
    assert run(capsys, "--input", path, "--now", NOW, "-o", "name", "-l", "team=shop")[1] == "shop/checkout\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(["-l", "team=shop"], 1, "1 examined: 1 error\n", id="one has them"),
        pytest.param(["-l", "team=shpo"], 2, "has the labels team=shpo\n", id="none has them"),
        pytest.param(
            ["-l", "team=shpo", "-n", "shop"],
            2,
            "no lease and no candidate of namespace shop has the labels team=shpo\n",
            id="none of a namespace has them",
        ),
    ],
)
def test_only_what_has_the_labels_is_examined(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labeled = make_lease(put("spec.leaseTransitions", 2**31 - 1), put("metadata.labels", {"team": "shop"}))
    found, out, err = run(capsys, "--input", dump(tmp_path, FROZEN, labeled), "--now", NOW, *words)
    assert found == code
    assert said in out + err
    assert ("0 examined" in out) is (code == 2)


def test_labels_select_the_leases_of_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(3)
    path = tmp_path / "watch.json"
    path.write_bytes(server.watch())
    assert run(capsys, "--input", str(path), "-l", "!team")[1].startswith("1 examined")
    assert run(capsys, "--input", str(path), "-l", "team")[0] == 2


@pytest.mark.parametrize(
    ("words", "summary"),
    [
        pytest.param(
            ["--check", "holder-clock,holder-gone"],
            "2 examined: none of holder-clock, holder-gone; 2 findings of other checks not shown",
            id="nothing of what was asked for",
        ),
        pytest.param(
            ["--check", "transitions-jump"],
            "2 examined: 1 error; 1 finding of other checks not shown",
            id="one of what was asked for",
        ),
        pytest.param(
            ["--check", "transitions-jump", "--severity", "error"], "2 examined: 1 error", id="others that are milder"
        ),
    ],
)
def test_findings_that_were_not_asked_for_are_counted(
    words: list[str], summary: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "--input", dump(tmp_path, FROZEN, TIGHT), "--now", NOW, *words)
    assert out.splitlines()[-1] == summary


def test_yaml_is_json_in_another_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path, FROZEN, TIGHT)
    texts = [run(capsys, "--input", path, "--now", NOW, "-o", output)[1] for output in ("yaml", "json")]
    assert [*yaml.safe_load_all(texts[0])] == lines(texts[1])
