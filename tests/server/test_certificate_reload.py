"""A pair that was refused is tried again: its time may come, and the memory may have room again."""

import datetime as dt
import os
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.conftest import Start
from tests.server.harness import make_certificates
from tests.server.traffic import REVIEW
from webhook.certificates.files import CA_CERTIFICATE, CA_KEY, MAX_FILE, Unusable
from webhook.certificates.issue import create_authority, issue_leaf, save
from webhook.server import certificate_reload
from webhook.server.certificate_reload import CertificateReloader

NOW = dt.datetime(2026, 1, 31, 12, 0, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
FULL = OSError(28, "No space left on device")


def save_pair(directory: Path, valid_from: dt.datetime = NOW) -> dt.datetime:
    """A pair whose leaf is valid from an hour before that moment; gives the end of the leaf."""
    directory.mkdir(exist_ok=True)
    authority = create_authority(valid_from)
    save(directory, authority, CA_KEY, CA_CERTIFICATE)
    leaf = issue_leaf(authority, ["localhost"], 90, valid_from)
    save(directory, leaf)
    return leaf.certificate.not_valid_after_utc


@pytest.fixture(name="certificates")
def reloader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CertificateReloader:
    monkeypatch.setattr(certificate_reload, "_now", lambda: NOW)
    return CertificateReloader(tmp_path / "tls", tmp_path)


def test_a_pair_of_tomorrow_is_ready_tomorrow(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path / "tls", NOW + DAY)
    certificates.start()
    assert "valid only from" in certificates.list_reasons()[0]
    certificates.poll()
    assert "valid only from" in certificates.list_reasons()[0]
    monkeypatch.setattr(certificate_reload, "_now", lambda: NOW + DAY)
    certificates.poll()
    assert certificates.list_reasons() == []
    assert certificates.list_warnings() == []


def test_a_new_pair_of_tomorrow_takes_the_place_of_a_good_one_tomorrow(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = save_pair(tmp_path / "tls")
    certificates.start()
    tomorrow = save_pair(tmp_path / "tls", NOW + DAY)
    certificates.poll()
    assert certificates.current is not None
    assert certificates.current.not_after == today
    monkeypatch.setattr(certificate_reload, "_now", lambda: NOW + DAY)
    certificates.poll()
    assert certificates.current.not_after == tomorrow


def test_a_pair_that_met_a_full_memory_is_taken_later(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path / "tls")
    certificates.start()
    new = save_pair(tmp_path / "tls", NOW + dt.timedelta(minutes=30))

    def full(*_: object, **__: object) -> int:
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        certificates.poll()
    assert "No space left on device" in certificates.list_warnings()[0]
    certificates.poll()
    assert certificates.list_warnings() == []
    assert certificates.current is not None
    assert certificates.current.not_after == new


def list_memory(directory: Path) -> dict[str, str]:
    """The mode of each file that is not in the directory of certificates."""
    return {path.name: f"{path.stat().st_mode & 0o777:o}" for path in directory.iterdir() if path.is_file()}


def test_the_last_good_pair_with_its_key_is_for_the_server_only(
    certificates: CertificateReloader, tmp_path: Path
) -> None:
    save_pair(tmp_path / "tls")
    before = os.umask(0)
    try:
        certificates.start()
    finally:
        os.umask(before)
    assert list_memory(tmp_path) == {"last-good.pem": "600"}


def test_no_key_stays_in_memory_of_a_pair_that_cannot_be_loaded(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path / "tls")
    certificates.start()
    save_pair(tmp_path / "tls", NOW + dt.timedelta(minutes=30))

    def refuse(*_: object) -> ssl.SSLContext:
        raise ssl.SSLError

    with monkeypatch.context() as patch:
        patch.setattr(certificate_reload, "make_context", refuse)
        assert certificates.poll() == "failure"
    assert list_memory(tmp_path) == {"last-good.pem": "600"}


def test_a_pair_that_expires_while_it_is_served_is_a_reason_to_get_no_traffic(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = save_pair(tmp_path / "tls")
    certificates.start()
    for now, reasons in (
        (end - dt.timedelta(seconds=1), []),
        (end, [f"certificate: expired at {end:%FT%TZ}"]),
        (end + DAY, [f"certificate: expired at {end:%FT%TZ}"]),
    ):
        monkeypatch.setattr(certificate_reload, "_now", lambda now=now: now)
        assert certificates.poll() is None
        assert certificates.list_reasons() == reasons
        assert certificates.has_good_pair == (not reasons)


def _fail_to_fork(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def _with(output: bytes) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    return lambda *command, **_: subprocess.CompletedProcess(command, 0, output)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(_fail_to_fork, id="no process can be started"),
        pytest.param(_with(b""), id="a process that wrote nothing"),
        pytest.param(_with(b'{"certificate":{}}'), id="a process that wrote something else"),
    ],
)
def test_without_a_process_the_server_itself_inspects(
    certificates: CertificateReloader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    end = save_pair(tmp_path / "tls")
    monkeypatch.setattr(subprocess, "run", run)
    certificates.start()
    assert certificates.current is not None
    assert certificates.current.not_after == end


def test_the_process_says_why_files_are_unusable(certificates: CertificateReloader, tmp_path: Path) -> None:
    save_pair(tmp_path / "tls")
    (tmp_path / "tls" / "tls.key").write_text("no key")
    with pytest.raises(Unusable, match=r"tls.key is not a private key in PEM without a password"):
        certificates.start()


def test_a_refused_pair_is_inspected_once_for_as_long_as_it_lies_there(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path / "tls")
    certificates.start()
    (tmp_path / "tls" / "tls.key").write_text("no key")
    done: list[subprocess.CompletedProcess[bytes]] = []
    monkeypatch.setattr(subprocess, "run", _recorded(done, subprocess.run))
    assert [certificates.poll() for _ in range(3)] == ["failure", None, None]
    assert len(done) == 1
    save_pair(tmp_path / "tls")
    assert certificates.poll() == "success"
    assert len(done) == 2


def test_the_process_imports_nothing_from_the_working_directory(
    certificates: CertificateReloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path / "tls")
    planted = tmp_path / "cryptography"
    planted.mkdir()
    (planted / "__init__.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    done: list[subprocess.CompletedProcess[bytes]] = []
    monkeypatch.setattr(subprocess, "run", _recorded(done, subprocess.run))
    certificates.start()
    assert [one.returncode for one in done] == [0]


def _recorded(
    done: list[subprocess.CompletedProcess[bytes]], run: Callable[..., subprocess.CompletedProcess[bytes]]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    def recorded(*command: object, **how: object) -> subprocess.CompletedProcess[bytes]:
        done.append(run(*command, **how))
        return done[-1]

    return recorded


def test_no_server_process_keeps_cryptography_in_memory(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with start(tmp_path) as server:
        assert server.post(REVIEW)[0] == 200
        for pid in (server.process.pid, *server.workers()):
            assert "cryptography" not in Path(f"/proc/{pid}/maps").read_text()


def test_a_comment_in_the_authority_of_clients_may_be_in_any_language(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    client_ca = tmp_path / "client-ca.crt"
    pem = (tmp_path / "tls" / CA_CERTIFICATE).read_bytes()
    client_ca.write_bytes("# Autorité de certification\n".encode() + pem)
    certificates = CertificateReloader(tmp_path / "tls", tmp_path, str(client_ca))
    certificates.start()
    assert certificates.list_reasons() == []
    assert certificates.make_listener_context().get_ca_certs()


def test_authorities_of_clients_are_not_cut(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    client_ca = tmp_path / "client-ca.crt"
    pem = (tmp_path / "tls" / CA_CERTIFICATE).read_bytes()
    client_ca.write_bytes(pem.ljust(MAX_FILE, b"\n"))
    CertificateReloader(tmp_path / "tls", tmp_path, str(client_ca)).start()
    client_ca.write_bytes(pem.ljust(MAX_FILE + 1, b"\n"))
    with pytest.raises(Unusable, match=r"client-ca\.crt is larger than 262144 bytes"):
        CertificateReloader(tmp_path / "tls", tmp_path, str(client_ca)).start()


def test_an_authority_of_clients_with_a_broken_byte_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    client_ca = tmp_path / "client-ca.crt"
    pem = (tmp_path / "tls" / CA_CERTIFICATE).read_bytes()
    client_ca.write_bytes(pem[:100] + b"\xc3" + pem[101:])
    with pytest.raises(ssl.SSLError, match="does not contain a certificate"):
        CertificateReloader(tmp_path / "tls", tmp_path, str(client_ca)).start()
