"""What holds for every command: exit codes, one line for a failure, no traceback."""

import argparse
import os
import subprocess
import sys
from typing import TextIO

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


def run_program(*args: str, stdout: int | TextIO = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "webhook", *args]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False, text=True)


@pytest.mark.parametrize("args", [["rules"], ["check", "tests/data/recordings/1.36.3"]])
def test_a_full_disk_is_not_a_bug(args: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = run_program(*args, stdout=full)
    assert (done.returncode, done.stderr) == (2, "lease-webhook: the output: No space left on device\n")


def test_ctrl_c_during_imports_leaves_no_traceback() -> None:
    # The slowest import stands for any: the signal comes while it runs.
    code = (
        "import builtins, os, signal, sys\n"
        "from webhook.cli.main import main\n"
        "load = builtins.__import__\n"
        "def interrupt(name, *rest, **more):\n"
        "    if name == 'cryptography': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest, **more)\n"
        "builtins.__import__ = interrupt\n"
        "sys.exit(main(['rules']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False, text=True)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(
    "args",
    [["check", "x", "--pol=strict"], ["policy", "show", "--name=x"], ["policy", "check", "x", "--form=json"]],
    ids=" ".join,
)
def test_an_option_is_typed_in_full(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main(args)
    assert f"unrecognized arguments: {args[-1]}" in capsys.readouterr().err


HELP = [[], ["serve"], ["check"], ["replay"], ["rules"], ["certs"], ["doctor"]]
HELP += [["policy"], ["policy", "check"], ["policy", "show"], ["policy", "schema"]]
HELP += [["suggest"], ["suggest", "fence"], ["export"], ["export", "fence"]]


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_help_is_as_wide_as_the_terminal_and_breaks_no_example(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        program.main([*command, "--help"])
    prose, _, examples = capsys.readouterr().out.partition("\nexample")
    whole = [line for line in prose.splitlines() if not line.startswith("  ")]
    assert max(map(len, whole)) <= 80
    lines = [line for line in examples.splitlines() if "lease-webhook" in line]
    assert all("lease-webhook " in line for line in lines)
    assert len(lines) >= bool(examples)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["serve", "--workers", "abc"], "'abc' is not a whole number above 0"),
        (["serve", "--workers", "0"], "'0' is not a whole number above 0"),
        (["check", "--require", "-1", "x"], "'-1' is not a whole number above 0"),
        (["check", "--require", "\u0661", "x"], "is not a whole number above 0"),
        (["certs", "--days", "x"], "'x' is not a number of days above 0 and at most 36500"),
        (["certs", "--days", "100000"], "'100000' is not a number of days above 0 and at most 36500"),
        (["certs", "--days", "nan"], "at most 36500"),
        (["certs", "--check", "--within", "soon"], "'soon' is not a time such as 14d or 36h"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_bad_value_is_named_in_words(args: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main(args)
    said = capsys.readouterr().err
    assert error in said
    assert " _" not in said
