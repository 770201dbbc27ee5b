"""The certificates that are made: a CA that API servers accept, and a leaf that it signs."""

import datetime as dt
import os
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from webhook.certificates.files import CA_CERTIFICATE, CA_KEY
from webhook.certificates.issue import (
    CLOCK_SKEW,
    Issued,
    create_authority,
    issue_leaf,
    list_service_names,
    load_authority,
    save,
)

NOW = dt.datetime(2026, 1, 31, 12, 0, tzinfo=dt.UTC)
NAMES = ("hook.example", "hook.guard.svc", "::1", "127.0.0.1")


@pytest.fixture(scope="module", name="authority")
def made_authority() -> Issued:
    return create_authority(NOW)


@pytest.fixture(scope="module", name="leaf")
def made_leaf(authority: Issued) -> Issued:
    return issue_leaf(authority, NAMES, 90, NOW)


def test_the_names_of_a_service() -> None:
    assert list_service_names("hook", "guard") == [
        "hook",
        "hook.guard",
        "hook.guard.svc",
        "hook.guard.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        "::1",
    ]


def test_both_are_ecdsa_p256_signed_with_sha256(authority: Issued, leaf: Issued) -> None:
    for certificate in (authority.certificate, leaf.certificate):
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert isinstance(certificate.signature_hash_algorithm, hashes.SHA256)


def test_the_ca_signs_leaves_only(authority: Issued) -> None:
    constraints = authority.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert authority.certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_two_cas_have_two_names(authority: Issued) -> None:
    assert create_authority(NOW).certificate.subject != authority.certificate.subject


def test_the_leaf_is_signed_by_the_ca_and_serves(authority: Issued, leaf: Issued) -> None:
    leaf.certificate.verify_directly_issued_by(authority.certificate)
    usage = leaf.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not leaf.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_the_leaf_has_its_names_and_no_common_name(leaf: Issued) -> None:
    names = leaf.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.critical
    assert names.value.get_values_for_type(x509.DNSName) == ["hook.example", "hook.guard.svc"]
    assert [str(one) for one in names.value.get_values_for_type(x509.IPAddress)] == ["::1", "127.0.0.1"]
    assert list(leaf.certificate.subject) == []


def test_the_leaf_is_valid_for_its_days(leaf: Issued) -> None:
    assert leaf.certificate.not_valid_before_utc == NOW - CLOCK_SKEW
    assert leaf.certificate.not_valid_after_utc == NOW + dt.timedelta(days=90)


def test_a_leaf_never_outlives_its_ca(authority: Issued) -> None:
    leaf = issue_leaf(authority, NAMES, 36500, NOW)
    assert leaf.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_what_is_saved_is_loaded(tmp_path: Path, authority: Issued, leaf: Issued) -> None:
    save(tmp_path, authority, CA_KEY, CA_CERTIFICATE)
    save(tmp_path, leaf)
    loaded = load_authority(tmp_path)
    assert loaded.certificate == authority.certificate
    assert loaded.key.private_numbers() == authority.key.private_numbers()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}


def test_a_ca_with_the_key_of_another_is_refused(tmp_path: Path, authority: Issued) -> None:
    save(tmp_path, Issued(authority.certificate, create_authority(NOW).key), CA_KEY, CA_CERTIFICATE)
    with pytest.raises(ValueError, match=r"ca\.key does not belong to ca\.crt"):
        load_authority(tmp_path)


def test_a_ca_with_an_rsa_key_is_refused(tmp_path: Path, authority: Issued) -> None:
    save(tmp_path, authority, CA_KEY, CA_CERTIFICATE)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "ca.key").write_bytes(pem)
    with pytest.raises(ValueError, match=r"ca\.key is not an ECDSA key"):
        load_authority(tmp_path)


def test_a_failed_write_changes_nothing(tmp_path: Path, leaf: Issued, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tls.key").write_text("before")

    def no_space(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, leaf)
    assert [path.name for path in tmp_path.iterdir()] == ["tls.key"]
    assert (tmp_path / "tls.key").read_text() == "before"
