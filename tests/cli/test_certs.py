"""`lease-webhook certs` makes, renews and checks certificates."""

import base64
import datetime as dt
from pathlib import Path

import pytest

from tests.server.harness import make_certificates
from webhook.certificates.files import read_pair
from webhook.certificates.inspect import inspect
from webhook.cli.main import main

NOW = dt.datetime.now(dt.UTC)


def test_certs_makes_renews_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "certs"
    assert main(["certs", str(directory), "--san", "hook.example", "--namespace", "guard"]) == 0
    assert "hook.example" in capsys.readouterr().out
    ca, leaf = (directory / "ca.crt").read_bytes(), (directory / "tls.crt").read_bytes()
    assert {"lease-webhook.guard.svc", "hook.example"} <= inspect(read_pair(directory)).check_dates(NOW).names
    assert main(["certs", str(directory)]) == 0
    assert (directory / "ca.crt").read_bytes() == ca
    assert (directory / "tls.crt").read_bytes() != leaf
    assert main(["certs", str(directory), "--new-ca"]) == 0
    assert (directory / "ca.crt").read_bytes() != ca
    assert inspect(read_pair(directory)).check_dates(NOW).problems == ()


@pytest.mark.parametrize(
    ("days", "code", "word"),
    [
        pytest.param(90, 0, "good", id="new"),
        pytest.param(0.01, 1, "renew soon", id="two thirds of its life are over"),
        pytest.param(-0.01, 2, "unusable", id="expired"),
    ],
)
def test_check_by_exit_code(
    tmp_path: Path, days: float, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_certificates(tmp_path, days)
    assert main(["certs", "--check", str(tmp_path)]) == code
    assert capsys.readouterr().out.startswith(word)


@pytest.mark.parametrize("command", ["certs --check DIRECTORY", "certs --ca-bundle DIRECTORY", "install --image=x:1"])
def test_a_directory_is_one_word_of_the_command_that_is_advised(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "my certs;reboot"
    if "--check" in command:
        directory.mkdir()
        make_certificates(directory, 0.01)
    args = [str(directory) if one == "DIRECTORY" else one for one in command.split()]
    assert main([*args, "--certificate=self-signed", f"--certs={directory}"] if "install" in command else args) > 0
    captured = capsys.readouterr()
    assert f"`lease-webhook certs '{directory}'`" in captured.out + captured.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 0),
        (("--service", "foo", "--namespace", "bar"), 0),
        (("--service", "lease-webhook", "--namespace", "bar"), 2),
        (("--service", "foo"), 2),
        (("--namespace", "bar"), 2),
        (("--san", "webhook.example"), 0),
        (("--san", "other.example"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_check_of_names(args: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["certs", str(tmp_path), "--service", "foo", "--namespace", "bar", "--san", "webhook.example"]
    assert main([*command, "--days", "10"]) == 0
    capsys.readouterr()
    assert main(["certs", "--check", str(tmp_path), *args]) == code
    text = capsys.readouterr().out
    assert text.startswith(("good: ", "renew soon: ", "unusable: ")[code])
    assert ("foo.bar.svc" in text) == (code == 0)


def test_a_life_of_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["certs", str(tmp_path), "--days", "1"])
    assert main(["certs", "--check", str(tmp_path)]) == 0
    assert "(1 day)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first", "second"), [("--check", "--ca-bundle"), ("--new-ca", "--check"), ("--new-ca", "--ca-bundle")]
)
def test_one_act_at_a_time(first: str, second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", str(tmp_path), first, second]) == 2
    assert f"{first} and {second} exclude each other" in capsys.readouterr().err


def test_check_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "--check", str(tmp_path)]) == 2
    assert "tls.crt: No such file" in capsys.readouterr().out


def test_half_a_ca_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_certificates(tmp_path)
    (tmp_path / "ca.key").unlink()
    before = (tmp_path / "ca.crt").read_bytes()
    assert main(["certs", str(tmp_path)]) == 2
    assert "has ca.crt but no ca.key" in capsys.readouterr().err
    assert (tmp_path / "ca.crt").read_bytes() == before


def test_the_bundle_is_ca_crt_in_base64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_certificates(tmp_path)
    assert main(["certs", "--ca-bundle", str(tmp_path)]) == 0
    assert base64.b64decode(capsys.readouterr().out) == (tmp_path / "ca.crt").read_bytes()


def test_serve_without_certificates_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--tls-dir", str(tmp_path)]) == 2
    assert f"`lease-webhook certs {tmp_path}` makes one" in capsys.readouterr().err
