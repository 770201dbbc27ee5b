"""Completion: what a shell offers for what has been typed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.admission.policy import schema
from webhook.cli.commands import COMPLETE, PROGRAM
from webhook.cli.main import main
from webhook.cli.options import PRESETS

BIN = Path(sys.executable).parent


def offered(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what fish reads: `type,value`, a tab and a help text."""
    monkeypatch.setenv(COMPLETE, "fish_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["lease-webhook", *words]))
    monkeypatch.setenv("COMP_CWORD", words[-1])
    assert main([]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ch"], ["plain,check"]),
        (["policy", "s"], ["plain,show", "plain,schema"]),
        (["rules", "takeover-b"], ["plain,takeover-before-expiry", "plain,takeover-by-node"]),
        (["check", "--policy", "st"], ["file,st", "plain,standard", "plain,strict"]),
        (["check", "x", "--against", "ob"], ["file,ob", "plain,observe"]),
        (["policy", "show", "obs"], ["file,obs", "plain,observe"]),
        (["check", "--format", "js"], ["plain,json"]),
        (["check", "--old", "li"], ["file,li"]),
        (["check", "lea"], ["file,lea"]),
        (["serve", "--tls-dir", "ce"], ["dir,ce"]),
        (["check", "--requi"], ["plain,--require"]),
        (["completion", ""], ["plain,bash", "plain,zsh", "plain,fish"]),
    ],
    ids=lambda value: " ".join(value) if value and "," not in value[0] else "",
)
def test_what_is_offered(
    words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(words, capsys, monkeypatch) == expected


def test_all_commands_are_offered_without_importing_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered([""], capsys, monkeypatch) == [f"plain,{name}" for name in PROGRAM.commands]


def test_names_of_leases_are_those_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\nprintf 'shop   checkout\\nshop   db\\nother   db\\n'\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert offered(["why", "sh"], capsys, monkeypatch) == ["plain,shop/checkout", "plain,shop/db"]


def test_without_kubectl_no_lease_is_offered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any(offered(["timeline", ""], capsys, monkeypatch))


def test_the_presets_are_those_of_policies() -> None:
    assert set(PRESETS) == set(schema.PRESETS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{COMPLETE}={shell}_complete" in script
    if path := shutil.which(shell):
        subprocess.run([path, "-n"], input=script, text=True, check=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rules takeover-bef", "takeover-before-expiry"),
        ("doctor --form", "--format"),
        ("do", "doctor"),
        ("why --check expire", "expired"),
    ],
)
def test_bash_completes(words: str, expected: str) -> None:
    code = f"""
        source <({BIN}/lease-webhook completion bash)
        compopt() {{ :; }}
        COMP_WORDS=({BIN}/lease-webhook {words})
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _lease_webhook_completion {BIN}/lease-webhook
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == ([expected], "")


def test_the_plugin_is_on_the_path() -> None:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["kubectl-lease", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout.startswith("Usage: kubectl lease [OPTIONS] COMMAND")
