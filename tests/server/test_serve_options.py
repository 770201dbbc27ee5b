"""What `serve` refuses, and the settings that it gives to gunicorn."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.harness import make_certificates
from webhook.cli.main import main
from webhook.server.settings import Options, gunicorn_settings


def test_settings_of_gunicorn() -> None:
    settings = gunicorn_settings(Options(), "/memory")
    assert settings["max_requests"] == 0
    assert settings["control_socket_disable"] is True
    assert settings["worker_tmp_dir"] == "/memory"
    assert settings["accesslog"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--client-ca", "ca.crt"], "need each other", id="a CA without names"),
        pytest.param(["--client-name", "kube-apiserver"], "need each other", id="names without a CA"),
        pytest.param(["--policy", "no-such-file.yaml"], "no-such-file.yaml", id="a policy that is not there"),
    ],
)
def test_serve_refuses_to_start(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("address", ["8443", "localhost", "localhost:99999", ":8443"])
def test_an_address_has_a_host_and_a_port(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", address]) == 2
    assert "is not HOST:PORT" in capsys.readouterr().err


def test_a_port_in_use_names_the_option(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag, other in (("--bind", "--health-bind"), ("--health-bind", "--bind")):
            command = [sys.executable, "-m", "webhook", "serve", flag, address, other, "127.0.0.1:0"]
            done = subprocess.run(
                [*command, "--tls-dir", str(tmp_path / "tls"), "--workers", "1"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 2
            said = f"lease-webhook: {address} is in use by another program; choose another address with {flag}"
            assert done.stderr.splitlines()[-1] == said
