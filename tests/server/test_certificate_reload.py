"""A pair that was refused is tried again: its time may come, and the memory may have room again."""

import datetime as dt
import os
from pathlib import Path

import pytest

from webhook.certificates import CA_CERTIFICATE, CA_KEY, create_authority, issue_leaf, save
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
    assert "valid only from" in certificates.reasons()[0]
    certificates.poll()
    assert "valid only from" in certificates.reasons()[0]
    monkeypatch.setattr(certificate_reload, "_now", lambda: NOW + DAY)
    certificates.poll()
    assert certificates.reasons() == []
    assert certificates.warnings() == []


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
    assert "No space left on device" in certificates.warnings()[0]
    certificates.poll()
    assert certificates.warnings() == []
    assert certificates.current is not None
    assert certificates.current.not_after == new
