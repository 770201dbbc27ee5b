"""README's tables about the server say what the code says."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from prometheus_client import CollectorRegistry

from tests.server.harness import make_certificates
from webhook.cli.main import main
from webhook.cli.serve import command
from webhook.server.observe.metrics import Metrics
from webhook.server.settings import Guards, Options, gunicorn_settings

README = (Path(__file__).parents[2] / "README.md").read_text()


def table(heading: str, first_column: str) -> list[list[str]]:
    """The rows of the table under `## heading` whose first column has this title."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert rows, f"no such table under {heading}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows[1].splitlines()]


def serve_options() -> dict[str, click.Parameter]:
    return {option.opts[-1]: option for option in command.params}


def test_flags_and_defaults_of_serve() -> None:
    written = {row[0].strip("`").split()[0]: row[1].strip("`") for row in table("Settings", "flag")}
    built_in = {
        "--policy": "standard",
        "--capture": "off",
        "--client-ca": "off",
        "--client-name": "off",
        "--no-audit-lines": "logged",
    }
    assert written == {flag: built_in.get(flag) or str(one.default) for flag, one in serve_options().items()}


def test_metrics_and_labels() -> None:
    written = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in table("Operate", "metric")}
    registry = Metrics()._registry
    assert isinstance(registry, CollectorRegistry)
    counted = {}
    for collector in registry._collector_to_names:
        kind = getattr(collector, "_type", "")
        name = getattr(collector, "_name", "") + ("_total" if kind == "counter" else "")
        counted[name] = list(getattr(collector, "_labelnames", ()))
    assert written == counted


def test_guards_of_production() -> None:
    guards = Guards()
    assert (guards.handshake_seconds, guards.request_seconds, guards.keep_alive_seconds) == (5, 5, 120)
    assert (guards.largest_head, guards.largest_body) == (64 * 1024, 20 * 1024 * 1024)
    assert (guards.largest_bytes_in_flight, guards.certificate_poll_seconds) == (64 * 1024 * 1024, 10)
    written = {row[0]: row[1] for row in table("Settings", "guard")}
    assert written["TLS handshake"] == written["a whole request, however it drips"] == "5 s"
    assert written["silence after the handshake or an answer"] == "120 s"
    assert (written["head of a request"], written["body"]) == ("64 KiB", "20 MiB")
    assert written["bodies on their way, for each worker"] == "64 MiB"


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
