"""What holds for every command: exit codes, one line for a failure, no traceback."""

import argparse
import os
import subprocess
import sys

import pytest

from webhook import __version__
from webhook.cli import commands
from webhook.cli import main as program
from webhook.cli.failure import Failure


def command(name: str, error: BaseException | None) -> object:
    """A command that does nothing, or fails with `error`."""

    class Command:
        @staticmethod
        def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
            subparsers.add_parser(name).set_defaults(run=Command.run)

        @staticmethod
        def run(_args: argparse.Namespace) -> int:
            if error:
                raise error
            return 7

    return Command


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None) -> int:
    monkeypatch.setattr(commands, "COMMANDS", (command("try", error),))
    return program.main(["try"])


def test_the_exit_code_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == 7


def test_a_failure_is_one_line_and_exit_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, Failure("policy.yaml: no such\nfile \x1b[2J")) == 2
    assert capsys.readouterr() == ("", "lease-webhook: policy.yaml: no such file \\x1b[2J\n")


def test_a_bug_is_one_line_and_exit_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, ZeroDivisionError("division by zero")) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("lease-webhook: this is a bug: ZeroDivisionError: division by zero")
    assert err.count("\n") == 1


def test_ctrl_c_is_130_without_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


def test_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        program.main([])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: lease-webhook")


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        program.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"lease-webhook {__version__}\n"


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "webhook", "rules", "--format", "markdown"],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
