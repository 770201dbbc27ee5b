"""A command that finds no lease says what it read, and what to do."""

import io
import json
from pathlib import Path

import pytest

from webhook.cli.main import main

ENVELOPES = "envelopes of log services that are opened: docs/why.md#audit-logs-of-clouds-and-collectors"
POLICY = "the audit policy must log leases, docs/why.md#the-audit-policy"
COMMANDS = (["why"], ["timeline"], ["export", "alerts"])
EVENT = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "verb": "create", "objectRef": {"resource": "pods"}}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", ["lease-webhook: no lease is in the input: FILE is empty"]),
        (
            json.dumps(EVENT),
            [
                "FILE: 1 audit events, of pods 1",
                f"lease-webhook: no lease is in the input: {POLICY}",
            ],
        ),
        (
            '{"shipped": {"apiVersion": "audit.k8s.io/v1", "kind": "Event"}}\n',
            [f"lease-webhook: no lease is in the input: other documents in FILE (no kind 1); {ENVELOPES}"],
        ),
        ("hello", ["FILE#1: not a Kubernetes object"]),
        ("[1]\n---\nkind: Pod\napiVersion: v1\n", None),
    ],
)
def test_an_input_without_leases_is_described(
    command: list[str], content: str, lines: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.log"
    file.write_text(content)
    err = run(capsys, *command, "--input", str(file)).replace(str(file), "FILE")
    if lines is None:
        assert err.endswith("no lease is in the input: other documents in FILE (Pod 1)\n")
    else:
        assert err.splitlines() == lines


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_that_is_wrong_is_named_and_nothing_else(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *command, "--input", "nosuch.json") == "nosuch.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["why"], "no lease"),
        (["timeline"], "no lease"),
        (["export", "alerts"], "no lease"),
        (["suggest", "bindings"], "no lease and no candidate"),
        (["audit", "--format", "json"], "no lease and no candidate"),
    ],
)
def test_a_cluster_without_leases_is_no_input(
    words: list[str], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("""#!/bin/sh\necho '{"kind": "List", "apiVersion": "v1", "items": []}'\n""")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(capsys, *words).removeprefix("lease-webhook: ") == f"{what} is in the cluster\n"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(b"\xff", "standard input, document 1: not UTF-8", id="a document"),
        pytest.param(b"\x1f\x8bx", "standard input, document 1: ", id="all of it"),
    ],
)
def test_standard_input_is_named_in_words(
    content: bytes, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run(capsys, "why", "--input", "-").startswith(name)


def test_a_directory_without_inputs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = run(capsys, "why", "--input", str(tmp_path))
    assert err == f"lease-webhook: no lease is in the input: {tmp_path} has no .json, .yaml, .log or .gz file\n"


def test_several_inputs_are_named_by_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for number, file in enumerate(files):
        file.write_text(
            "\n".join(json.dumps({"kind": f"Kind{kind}", "apiVersion": "v1"}) for kind in range(4 + number))
        )
    err = run(capsys, "why", "--input", str(files[0]), "--input", str(files[1]))
    assert err.endswith(f": other documents in {files[0]} and 1 more (Kind0 2, Kind1 2, Kind2 2, ...)\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["certs", "FILE"], "FILE is a file; certificates are written into a directory"),
        (["policy", "FILE"], "a file is an argument of check: lease-webhook policy check FILE"),
        (["policy", "shwo"], "No such command 'shwo'. Did you mean show?"),
        (
            ["suggest", "fence", "--writer", "shop/a", "--input", "FILE"],
            "no stored write by the service account shop/a is in the input; it must be an audit log",
        ),
    ],
)
def test_a_file_in_the_wrong_place_gets_a_hint_where_it_belongs(
    words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.log"
    file.write_text(json.dumps(EVENT))
    err = run(capsys, *(str(file) if word == "FILE" else word for word in words))
    assert text in err.replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("words", "resources"),
    [
        (["why"], "leases"),
        (["audit"], "leases"),
        (["doctor"], "validatingwebhookconfigurations,mutatingwebhookconfigurations"),
        (["writers", "shop/checkout"], "roles,rolebindings,clusterroles,clusterrolebindings"),
    ],
)
def test_without_kubectl_the_command_is_named_that_writes_an_input(
    words: list[str],
    resources: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"name a file that was written by: kubectl get {resources} " in run(capsys, *words)
