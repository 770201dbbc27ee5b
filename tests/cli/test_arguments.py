"""Inputs are options, everywhere but in `check`: a file as an argument is refused in one line that says so."""

import io
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from webhook.cli.main import main

COMMANDS = ["why", "timeline", "audit", "doctor", "suggest bindings", "suggest fence --writer=shop/checkout"]


@pytest.fixture(autouse=True)
def no_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    "command",
    [
        "why --input - --input -",
        "timeline --input - --input -",
        "audit --input - --input -",
        "writers a/b --input - --input -",
        "export alerts --input - --input -",
        "check - -",
        "check --old - -",
    ],
)
def test_standard_input_is_read_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    assert ": - is given twice: standard input is read once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("audit", "[default: warning] --fail-on"),
        ("audit", "or above [default: warning] --with-pods"),
        ("certs", "in DIR (default: certs)"),
        ("top", "--sort-by [worst|name|renewed|changes] worst unless given -h"),
        ("why", "worst unless given; without it, json, yaml and name are sorted by name"),
    ],
)
def test_help_says_what_is_so_unless_it_is_given(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert text in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("command", "takes_several"),
    [("why", False), ("suggest bindings", False), ("suggest fence --writer=a/b --input=x", False), ("timeline", True)],
)
def test_usage_promises_several_leases_only_where_they_are_taken(
    command: str, takes_several: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert ("[NAMESPACE/NAME]..." in capsys.readouterr().out) is takes_several


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "word",
    [
        pytest.param("leases.json", id="a file"),
        pytest.param("./leases.json", id="a path with one slash"),
        pytest.param("folder", id="a directory"),
        pytest.param("-", id="standard input"),
        pytest.param("two words\n.json", id="a name of two lines"),
    ],
)
def test_a_file_as_an_argument_is_refused(
    command: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    for name in {"leases.json", word} - {"folder", "-", "./leases.json"}:
        (tmp_path / name).write_text("{}")
    assert main([*command.split(), word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    quoted = shlex.quote(word.replace("\n", "\\n"))
    assert f"an input is an option: --input {quoted} (see " in err


@pytest.mark.parametrize("command", ["why", "timeline", "suggest bindings"])
def test_a_lease_may_have_the_name_of_a_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "checkout").touch()
    (tmp_path / "leases.json").write_text("{}")
    assert main([*command.split(), "shop/checkout", "--input", "leases.json"]) == 2
    assert "an input is an option" not in capsys.readouterr().err


def test_doctor_has_no_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "shop/checkout"]) == 2
    assert '"shop/checkout" is not expected: doctor examines the cluster, or --input' in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_what_is_piped_is_read_only_if_it_is_named(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped = io.BytesIO(b"{}")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(piped))
    assert main(command.split()) == 2
    assert "kubectl" in capsys.readouterr().err
    assert piped.tell() == 0


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes standard input a pipe with these bytes, to which a command may still write."""
    with ExitStack() as opened:

        def install(data: bytes, *, is_closed: bool = False) -> None:
            reader, writer = os.pipe()
            os.write(writer, data)
            opened.callback(os.close, writer) if not is_closed else os.close(writer)
            monkeypatch.setattr("sys.stdin", opened.enter_context(open(reader)))  # noqa: PTH123 - a descriptor

        yield install


@pytest.mark.parametrize(
    ("command", "what_reads_it"),
    [
        *((command, "--input -") for command in (*COMMANDS[:-1], "writers shop/checkout", "export alerts")),
        ("timeline --serve", "--input -"),
        ("check", "the argument -"),
    ],
)
def test_a_pipe_that_is_not_read_is_mentioned_with_what_reads_it(
    command: str, what_reads_it: str, pipe: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(b"{}")
    assert main(command.split()) == 2
    expected = f"the cluster is examined, not standard input: {what_reads_it} reads that\n"
    assert capsys.readouterr().err.count(expected) == 1


@pytest.mark.parametrize("command", ["check --old -", "audit --in-cluster", "why --input -"])
def test_a_pipe_that_is_read_or_not_asked_for_is_not_mentioned(
    command: str, pipe: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(b"{}", is_closed=True)
    assert main(command.split()) == 2
    assert "not standard input" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("is_closed", "is_mentioned"),
    [
        pytest.param(False, True, id="a command that has not written yet"),
        pytest.param(True, False, id="the closed pipe that cron gives a job"),
    ],
)
def test_a_pipe_without_a_byte_is_mentioned_while_something_may_come(
    is_closed: bool, is_mentioned: bool, pipe: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(b"", is_closed=is_closed)
    assert main(["why"]) == 2
    assert ("not standard input" in capsys.readouterr().err) is is_mentioned


@pytest.mark.parametrize("command", ["why", "timeline", "suggest bindings", "policy show"])
def test_a_lease_is_no_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--lease", "shop/checkout"]) == 2
    assert "No such option '--lease'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["doctor", "writers shop/checkout"])
@pytest.mark.parametrize("option", ["-n shop", "-A"])
def test_what_examines_no_namespace_has_no_option_for_one(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), *option.split()]) == 2
    assert f"No such option {option[:2]!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["why", "--as-group", "dev"], "--as-group needs --as, as in kubectl"),
        (["why", "--request-timeout", "soon"], '"soon" is not a time such as 5s'),
        (["audit", "--in-cluster", "--as", "dev"], "without kubectl: --as is not for it"),
        (["record", "history", "--in-cluster", "--context", "eu"], "without kubectl: --context is not for it"),
        (["why", "--input", "x", "--context", "eu"], "--context is for kubectl, which does not run with --input"),
        (["writers", "a/b", "--input", "x", "--as", "dev"], "--as is for kubectl, which does not run with --input"),
        (["doctor", "--input", "x", "--cluster", "eu"], "--cluster is for kubectl, which does not run with --input"),
        (["check", "x", "--kubeconfig", "y"], "--kubeconfig is for kubectl, which does not run with a PATH"),
        (["audit", "--input", "x", "--with-pods"], "--with-pods is for kubectl: pods and nodes of --input"),
    ],
)
def test_options_of_kubectl_that_do_not_fit_are_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("command", ["why", "policy show strict"])
def test_a_lease_and_an_option_name_one_namespace(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "shop/checkout", "--namespace", "bank"]) == 2
    assert "shop/checkout and --namespace bank name two namespaces" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "is_refused"), [([], True), (["--input", "leases.json"], False)])
def test_a_file_whose_path_is_a_name_of_a_lease_is_refused_without_an_input(
    given: list[str],
    is_refused: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "audit.log.gz").touch()
    (tmp_path / "leases.json").write_text("{}")
    assert main(["why", "shop/audit.log.gz", *given]) == 2
    assert ("an input is an option: --input shop/audit.log.gz" in capsys.readouterr().err) is is_refused
