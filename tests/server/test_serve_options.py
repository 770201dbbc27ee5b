"""What `serve` refuses, and the settings that it gives to gunicorn."""

import socket
from pathlib import Path

import pytest

from tests.server.harness import make_certificates
from webhook.admission.policy.file import PolicyFile
from webhook.cli.main import main
from webhook.server.certificate_reload import CertificateReloader
from webhook.server.reviewer import respond
from webhook.server.serve import GunicornApp, serve
from webhook.server.settings import Options


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    make_certificates(directory)
    return directory


def serve_on(certificates: Path, flag: str, address: str) -> list[str]:
    """The command with one address given and the other one any."""
    other = {"--bind": "--health-bind", "--health-bind": "--bind"}[flag]
    return ["serve", "--tls-dir", str(certificates), flag, address, other, "127.0.0.1:0"]


def test_settings_of_gunicorn() -> None:
    settings = GunicornApp(Options(), Path("/dev"), PolicyFile(None), respond).cfg
    assert settings.max_requests == 0
    assert settings.control_socket_disable is True
    assert settings.worker_tmp_dir == "/dev"
    assert settings.accesslog is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--client-ca", "ca.crt"], "need each other", id="a CA without names"),
        pytest.param(["--client-name", "kube-apiserver"], "need each other", id="names without a CA"),
        pytest.param(["--docs-url", "http://a.example"], "must be an https address", id="an address without TLS"),
        pytest.param(["--policy", "no-such-file.yaml"], "no-such-file.yaml", id="a policy that is not there"),
    ],
)
def test_serve_refuses_to_start(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"not a certificate\n", "clients.crt holds no certificate in PEM", id="another file"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "clients.crt holds a damaged certificate",
            id="a certificate that is cut",
        ),
        pytest.param(None, "clients.crt: No such file or directory", id="no file"),
    ],
)
def test_a_client_ca_that_cannot_be_used_is_not_blamed_on_the_serving_certificate(
    content: bytes | None, problem: str, certificates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clients.crt"
    if content is not None:
        file.write_bytes(content)
    words = ["serve", "--tls-dir", str(certificates), "--client-ca", str(file), "--client-name", "kube-apiserver"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith("lease-webhook: --client-ca: ")
    assert problem in err
    assert err.endswith("; give the CA that signs the API servers' client certificates\n")


@pytest.mark.parametrize("address", ["8443", "localhost", "localhost:99999", ":8443"])
def test_an_address_has_a_host_and_a_port(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", address]) == 2
    assert "is not HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("192.0.2.1:8443", "Cannot assign requested address", id="an address of another machine"),
        pytest.param(f"{'a' * 64}:8443", "Name or service not known", id="a label too long for DNS"),
        pytest.param(f"{'é' * 64}:8443", "not the name of a host", id="a label too long for IDNA"),
    ],
)
@pytest.mark.parametrize("flag", ["--bind", "--health-bind"])
def test_an_address_that_cannot_be_bound_names_the_option(
    certificates: Path, flag: str, address: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(serve_on(certificates, flag, address)) == 2
    assert capsys.readouterr().err == (
        f"lease-webhook: cannot listen on {address}: {reason}; choose another with {flag}\n"
    )


@pytest.mark.parametrize("flag", ["--bind", "--health-bind"])
def test_a_port_in_use_names_the_option(certificates: Path, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert main(serve_on(certificates, flag, address)) == 2
    assert capsys.readouterr().err == (
        f"lease-webhook: cannot listen on {address}: Address already in use; choose another with {flag}\n"
    )


@pytest.mark.parametrize("bug", [TypeError, ValueError])
def test_a_bug_while_the_certificate_is_read_is_no_advice_to_the_operator(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, bug: type[Exception]
) -> None:
    def fail(_certificates: CertificateReloader) -> None:
        raise bug("put in by a test")

    monkeypatch.setattr(CertificateReloader, "start", fail)
    with pytest.raises(bug, match="put in by a test"):
        serve(Options(tls_dir=str(certificates), bind="127.0.0.1:0", health_bind="127.0.0.1:0"))


def test_reviews_and_probes_need_two_addresses(certificates: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
    arguments = ["serve", "--tls-dir", str(certificates), "--bind", address, "--health-bind", address]
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith("choose another with --health-bind\n")
