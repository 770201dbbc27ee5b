"""What holds for every command: exit codes, one line for a failure, no traceback."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TextIO

import click
import pytest

from webhook import __version__
from webhook.cli import commands
from webhook.cli import main as program
from webhook.cli.commands import LazyGroup
from webhook.cli.terminal import Failure


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None) -> int:
    """Run a command that does nothing, or fails with `error`."""

    @click.command("try")
    def command() -> int:
        if error:
            raise error
        return 7

    monkeypatch.setitem(commands.PROGRAM.commands, "try", command)
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


def test_an_interrupted_call_gives_130_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("group", [[], ["policy"], ["suggest"], ["export"]], ids=str)
def test_no_command_is_wrong_usage_and_shows_the_help(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([*group, "--help"]) == 0
    output = capsys.readouterr().out
    assert program.main(group) == 2
    assert capsys.readouterr() == ("", output)
    assert output.startswith(" ".join(["Usage: lease-webhook", *group]))


def find_commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a group and of each command in it."""
    yield above
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from find_commands(command, *above, name)
        else:
            yield (*above, name)


@pytest.mark.parametrize("command", [*find_commands(commands.PROGRAM)], ids=" ".join)
def test_the_help_fits_80_columns(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert program.main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(" ".join(["Usage: lease-webhook", *command]))
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["chek", "x"], "lease-webhook: No such command 'chek'. Did you mean check? (see lease-webhook --help)\n"),
        (["explain"], "lease-webhook: No such command 'explain'. (see lease-webhook --help)\n"),
        (["serve", "-o", "x"], "lease-webhook serve: No such option '-o'. (see lease-webhook serve --help)\n"),
        (["zzz"], "lease-webhook: No such command 'zzz'. (see lease-webhook --help)\n"),
        (
            ["policy", "shwo"],
            "lease-webhook policy: No such command 'shwo'. Did you mean show? (see lease-webhook policy --help)\n",
        ),
        (
            ["check", "--polcy", "strict", "x"],
            "lease-webhook check: No such option '--polcy'. Did you mean --policy? (see lease-webhook check --help)\n",
        ),
        (
            ["policy", "check"],
            "lease-webhook policy check: Missing argument 'NAME|FILE...'. (see lease-webhook policy check --help)\n",
        ),
        (
            ["rules", "--format", "\x1b[2J"],
            (
                "lease-webhook rules: Invalid value for '-o' / '--format' / '--output': '\\x1b[2J' is not one of "
                "'text', 'json'. (see lease-webhook rules --help)\n"
            ),
        ),
    ],
    ids=lambda value: "-".join(value).replace("\x1b", "ESC") if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line_with_the_nearest_name(
    args: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(args) == 2
    assert capsys.readouterr() == ("", error)


def test_every_command_has_the_name_under_which_it_is_listed() -> None:
    context = click.Context(commands.PROGRAM)

    def check(group: LazyGroup) -> None:
        for name in {*group.list_commands(context)}:
            _, command, _ = group.resolve_command(context, [name])
            assert command is not None
            assert command.name == name
            if isinstance(command, LazyGroup):
                check(command)

    check(commands.PROGRAM)


def test_as_a_plugin_of_kubectl_its_help_says_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-lease"])
    assert program.main(["rules", "--help"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Usage: kubectl lease rules [OPTIONS] [ID]")
    assert "  kubectl lease rules takeover-before-expiry" in output
    assert program.main(["record", "--help"]) == 0
    assert "kubectl -n lease-webhook exec lease-recorder-0" in capsys.readouterr().out
    assert program.main(["rules", "zzz"]) == 2
    assert capsys.readouterr().err.startswith("kubectl lease: there is no rule")


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"lease-webhook {__version__}\n"


def test_a_reader_that_leaves_early_gives_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "webhook", "rules", "--format", "json"],
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


def test_a_closed_output_is_not_a_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # So Python begins where a shell has closed it: `lease-webhook rules >&-`.
    monkeypatch.setattr("sys.stdout", None)
    assert program.main(["rules"]) == 2
    assert capsys.readouterr().err == "lease-webhook: standard output is closed\n"


STARTED = """
import os, sys
from webhook.cli.main import script

class SaysThatItBegins:
    def find_spec(self, name, path, target=None):
        if name == "webhook.cli.commands":
            os.write(%d, b".")

sys.meta_path.insert(0, SaysThatItBegins())
script()
"""


@pytest.mark.parametrize("seed", range(8))
def test_ctrl_c_at_any_moment_leaves_no_traceback(seed: int) -> None:
    moment = random.Random(seed)
    args = moment.choice([["rules"], ["check", "tests/data/recordings/1.36.3"], ["--version"], ["check", "--help"]])
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", STARTED % writer, *args],
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        os.close(writer)
        assert os.read(reader, 1) == b"."
        os.close(reader)
        time.sleep(moment.uniform(0, 0.3))
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
    assert err == ""
    assert program.returncode in {0, 1, -signal.SIGINT}


@pytest.mark.parametrize("args", [["--help"], ["rules", "--format", "json"], ["check", "tests/data/recordings/1.36.3"]])
def test_a_reader_of_one_line_gives_no_error(args: list[str]) -> None:
    command = f"{shlex.join([sys.executable, '-m', 'webhook', *args])} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False, text=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.mark.parametrize(
    "args",
    [["check", "x", "--pol=strict"], ["policy", "show", "--name=x"], ["policy", "check", "x", "--form=json"]],
    ids=" ".join,
)
def test_an_option_is_typed_in_full(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(args) == 2
    assert f"No such option '{args[-1].partition('=')[0]}'" in capsys.readouterr().err


HELP = [[], ["serve"], ["check"], ["rules"], ["certs"], ["doctor"]]
HELP += [["policy"], ["policy", "check"], ["policy", "show"], ["policy", "schema"]]
HELP += [["suggest"], ["suggest", "fence"], ["export"], ["export", "fence"]]


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_help_is_as_wide_as_the_terminal_and_breaks_no_example(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert program.main([*command, "--help"]) == 0
    prose, _, examples = capsys.readouterr().out.partition("\nExample")
    assert max(map(len, prose.splitlines())) <= 80
    assert max(map(len, examples.splitlines()), default=0) <= 100
    assert "  lease-webhook " in examples or not examples


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["serve", "--workers", "abc"], "'--workers': 'abc' is not a valid integer"),
        (["check", "--require", "-1", "x"], "'--require': -1 is not in the range x>=0"),
        (["certs", "--days", "100000"], "'--days': 100000.0 is not in the range 0<x<=36500"),
        (["certs", "--days", "nan"], "no certificate made"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_bad_value_is_named_in_words(args: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(args) == 2
    errors = capsys.readouterr().err
    assert error in errors
    assert " _" not in errors
