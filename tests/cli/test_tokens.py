"""`audit --fence`: objects with an older token than the term of the lease; `why` and `timeline` show terms."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_stamps import StampingServer, listed, run
from tests.factories import STAMP_ENTRY, Document, drop, make_candidate, put
from tests.history.fake_server import together
from webhook.cli.main import main

SUFFIX = "1a2b3c4d"
KEY = f"db.lease-webhook/token-{SUFFIX}"
FENCE = {
    "name": "db",
    "lease": "shop/db",
    "writers": ["shop/db"],
    "resources": ["configmaps", "proxies.example.com", "deployments.apps/status"],
    "token": True,
}
TAKEN = "2026-11-20T12:00:00Z"
LEASE: Document = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "db",
        "namespace": "shop",
        "resourceVersion": "200",
        "managedFields": [STAMP_ENTRY],
        "annotations": {
            f"lease-webhook/writer-{SUFFIX}": "uid-of-b system:serviceaccount:shop:db",
            f"lease-webhook/written-{SUFFIX}": "2026-11-20T12:10:00Z",
            f"lease-webhook/term-{SUFFIX}": "100",
        },
    },
    "spec": {
        "holderIdentity": "b",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-20T12:00:00.500000Z",
        "renewTime": "2026-11-20T12:10:00.000000Z",
    },
}
"""Taken by `b` at 12:00:00 in term 100."""
OBJECT: Document = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "left",
        "namespace": "shop",
        "resourceVersion": "150",
        "annotations": {KEY: f"{50:018}"},
        "managedFields": [
            {"manager": "kubectl", "operation": "Update", "time": "2026-11-20T11:00:00Z"},
            {"manager": "op", "operation": "Update", "time": "2026-11-20T12:00:04Z"},
        ],
    },
}
"""Written by somebody after that, with the token of term 50."""


def policy(path: Path, **fence: Any) -> str:
    stamps = [{"suffix": SUFFIX, "namespaces": ["shop"]}]
    path.write_text(json.dumps({"apiVersion": "lease-webhook/v1", "stamps": stamps, "fences": [FENCE | fence]}))
    return str(path)


def changed(document: Document, *changes: Any) -> Document:
    copy: Document = json.loads(json.dumps(document))
    for change in changes:
        change(copy)
    return copy


def token(text: str) -> Any:
    """A change of the token; its name has a dot."""
    return lambda document: document["metadata"]["annotations"].update({KEY: text})


def audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *items: Document, form: str = "json", policy_file: str = ""
) -> tuple[list[Document], str]:
    """Return the findings about tokens, and what was said beside them."""
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    file = policy_file or policy(tmp_path / "policy.yaml")
    main(
        ["audit", "--fence", "--policy", file, "--format", form, "--input", str(dump), "--now", "2026-11-20T12:10:01Z"]
    )
    printed = capsys.readouterr()
    findings = [json.loads(line) for line in printed.out.splitlines()] if form == "json" else []
    return [one for one in findings if one["check"].startswith("token-")], " ".join((printed.err + printed.out).split())


def test_what_was_left_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [finding], _ = audited(tmp_path, capsys, OBJECT, LEASE)
    assert (finding["check"], finding["severity"]) == ("token-old", "warning")
    assert (finding["kind"], finding["namespace"], finding["name"]) == ("ConfigMap", "shop", "left")
    assert finding["fix"] == "kubectl -n shop get configmap left -o yaml --show-managed-fields"
    assert finding["message"] == (
        "its token is of term 50 of lease shop/db, and it was written at 2026-11-20T12:00:04Z (field manager "
        '"op"), and term 100 began at 2026-11-20T12:00:00Z: by an old leader through an API server whose watch was '
        "late, or by someone whom the fence does not name"
    )


LAST = "metadata.managedFields[1]"


def test_the_leader_may_have_written_what_stores_no_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [finding], _ = audited(
        tmp_path, capsys, changed(OBJECT, put("kind", "Proxy"), put(f"{LAST}.subresource", "status")), LEASE
    )
    assert finding["message"] == (
        "its token is of term 50 of lease shop/db, and its status was written at 2026-11-20T12:00:04Z (field manager "
        '"op"), and term 100 began at 2026-11-20T12:00:00Z: by the leader, as such a write may store no token, by an '
        "old leader through an API server whose watch was late, or by someone whom the fence does not name"
    )


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        pytest.param([token(f"{100:018}")], None, id="the token of this term"),
        pytest.param([put("metadata.resourceVersion", "100")], None, id="not written since, whatever times say"),
        pytest.param([put("metadata.resourceVersion", "many")], "warning", id="its revision is not known"),
        pytest.param([put(f"{LAST}.time", TAKEN)], "warning", id="in the second of the change"),
        pytest.param([put(f"{LAST}.time", "2026-11-20T11:59:59Z")], "info", id="in the second before"),
        pytest.param([drop(f"{LAST}.time")], "info", id="without a time"),
        pytest.param([drop("metadata.managedFields")], "info", id="without managedFields"),
        pytest.param([put(f"{LAST}.subresource", "scale")], "info", id="through a subresource that is not fenced"),
        pytest.param(
            [put("kind", "Deployment"), put(f"{LAST}.subresource", "status")], "warning", id="through one that is"
        ),
        pytest.param(
            [put("kind", "Proxy"), put(f"{LAST}.subresource", "status")], "info", id="through one that stores no token"
        ),
        pytest.param([put(f"{LAST}.manager", "ancient-changes")], "info", id="a time that clients choose"),
        pytest.param([drop(f"{LAST}.manager")], "warning", id="without a manager"),
        pytest.param([drop("metadata.namespace")], "warning", id="of the whole cluster"),
    ],
)
def test_when_an_object_was_left(
    changes: list[Any], severity: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings, _ = audited(tmp_path, capsys, LEASE, changed(OBJECT, *changes))
    assert [one["severity"] for one in findings] == ([severity] if severity else [])
    assert all(one["check"] == "token-old" for one in findings)


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        pytest.param([put("spec.acquireTime", "2036-01-01T00:00:00.000000Z")], "info", id="its clock is ahead"),
        pytest.param([drop("spec.acquireTime")], "info", id="no time but that of the last renewal"),
        pytest.param([drop("spec.holderIdentity")], "info", id="released: since the last write"),
        pytest.param(
            [drop("spec.acquireTime"), put(f"metadata.annotations.lease-webhook/written-{SUFFIX}", "soon")],
            "info",
            id="no time at all",
        ),
        pytest.param([drop(f"metadata.annotations.lease-webhook/term-{SUFFIX}")], "warning", id="not renewed yet"),
    ],
)
def test_when_the_term_began(
    changes: list[Any], severity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    revision = put("metadata.resourceVersion", "210")
    [finding], _ = audited(tmp_path, capsys, changed(LEASE, *changes), changed(OBJECT, revision))
    assert finding["severity"] == severity


@pytest.mark.parametrize(
    ("text", "check"), [("199", ["token-ahead"]), ("200", [])], ids=["between the two", "after the lease was listed"]
)
def test_a_token_greater_than_the_term(
    text: str, check: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = changed(OBJECT, token(f"{text:>018}"), put("metadata.resourceVersion", "250"))
    findings, _ = audited(tmp_path, capsys, LEASE, later)
    assert [one["check"] for one in findings] == check


def test_a_token_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ahead = [token("9" * 18), drop("metadata.namespace"), put("kind", "Proxy")]
    [finding], _ = audited(tmp_path, capsys, LEASE, changed(OBJECT, *ahead))
    assert (finding["check"], finding["severity"]) == ("token-ahead", "error")
    assert finding["fix"].startswith(f"kubectl annotate --overwrite proxy left {KEY}=000000000000000000 ")


def test_terms_that_are_not_known_are_reported_as_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = changed(OBJECT, drop("metadata.annotations"))
    proxy = {"apiVersion": "example.com/v1", "kind": "Proxy", "metadata": {"name": "p"}}
    soon = changed(OBJECT, token("soon"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {KEY: None}}}
    findings, text = audited(tmp_path, capsys, LEASE, bare, proxy, soon, secret)
    assert not findings
    assert "fence db: 3 objects of kinds that it covers have no token (ConfigMap, Proxy), so in which term" in text
    _, text = audited(tmp_path, capsys, OBJECT, form="text")
    assert "fence db: no stamped lease shop/db was found, so the term" in text


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(put("metadata.managedFields[0].manager", "x"), id="annotations that no one stamped"),
        pytest.param(put(f"metadata.annotations.lease-webhook/term-{SUFFIX}", "-5"), id="no number"),
        pytest.param(put(f"metadata.annotations.lease-webhook/term-{SUFFIX}", "9" * 20), id="too large a number"),
    ],
)
def test_a_term_that_is_not_known(change: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings, text = audited(tmp_path, capsys, changed(LEASE, change), OBJECT, make_candidate())
    assert "no stamped lease" in text
    assert not findings


def test_the_latest_state_of_a_watch_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = [{"type": "ADDED", "object": LEASE}, {"type": "DELETED", "object": LEASE}]
    file, dump = tmp_path / "watch.json", tmp_path / "dump.json"
    dump.write_text(json.dumps(OBJECT))
    for number, is_found in ((1, True), (2, False)):
        file.write_text("\n".join(map(json.dumps, watch[:number])))
        given = ["--fence", "--policy", policy(tmp_path / "policy.yaml")]
        main(["audit", *given, "--input", str(file), "--input", str(dump)])
        assert ("token-old" in capsys.readouterr().out) is is_found


@pytest.mark.parametrize(
    ("words", "fence"),
    [
        pytest.param([], None, id="no policy file"),
        pytest.param([], {"token": False}, id="no fence with a token"),
        pytest.param(["--in-cluster"], {}, id="in the cluster"),
    ],
)
def test_it_needs_a_fence_with_a_token(
    words: list[str], fence: dict[str, Any] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [] if fence is None else ["--policy", policy(tmp_path / "policy.yaml", **fence)]
    assert main(["audit", "--fence", *given, *words, *([] if words else ["--input", "x.json"])]) == 2
    assert "--fence needs a --policy with a fence that has a token" in capsys.readouterr().err


def test_kubectl_lists_what_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = tmp_path / "kubectl"
    answers = {"leases.coordination.k8s.io": LEASE, "configmaps": OBJECT}
    for name, item in answers.items():
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}))
    kubectl.write_text(f'#!/bin/sh\necho "$2" >> {tmp_path}/asked\ncat {tmp_path}/"$2" 2> /dev/null || true\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert main(["audit", "--fence", "--policy", policy(tmp_path / "policy.yaml")]) == 1
    assert "ConfigMap shop/left  token-old" in capsys.readouterr().out
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:4] == ["leases.coordination.k8s.io", "configmaps", "deployments.apps", "proxies.example.com"]


class TermServer(StampingServer):
    """Stamps terms as well."""

    def write(self, lease: str, spec: Document, manager: str, user: str, pod: str) -> None:
        before = self.leases.get(lease)
        super().write(lease, spec, manager, user, pod)
        if before is not None:
            key, annotations = f"lease-webhook/term-{SUFFIX}", self.leases[lease]["metadata"]["annotations"]
            is_same = before["spec"]["holderIdentity"] == spec["holderIdentity"]
            revision = int(before["metadata"]["resourceVersion"])
            known = before["metadata"]["annotations"].get(key, str(revision - 1))
            annotations[key] = known if is_same else str(revision)


def test_terms_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = TermServer()
    first, other = (server.elector(pod, "shop/db") for pod in ("db-0", "db-1"))
    together(10, first)
    first.release()
    together(10, other)
    watch, dump = tmp_path / "watch.json", tmp_path / "leases.json"
    watch.write_bytes(server.watch())
    dump.write_bytes(listed(server))
    given = ["--policy", policy(tmp_path / "policy.yaml")]
    output = run(capsys, "why", "shop/db", "--input", str(watch), *given)
    notes = json.loads(run(capsys, "why", "shop/db", "--input", str(watch), *given, "--format", "json"))
    terms = [one["term"] for one in notes["tenures"]]
    assert terms == sorted(terms)
    assert len(terms) == 2
    assert f"; term {terms[1]}" in output
    assert f"Term {terms[1]}: the token of its writes" in output
    assert f"Term {terms[1]}:" in run(capsys, "why", "shop/db", "--input", str(dump), *given)
    drawn = run(capsys, "timeline", "--input", str(watch), *given, "--format", "json", "-o", "-")
    assert f"; term {terms[1]}" in drawn
    unverified = run(capsys, "why", "shop/db", "--input", str(watch))
    assert "term" not in unverified.lower()
