"""What is wrong with the files of a TLS directory, and what cannot serve at all."""

import datetime as dt
import io
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.certificates import inspect as certificates
from webhook.certificates.files import (
    CA_CERTIFICATE,
    CA_KEY,
    MAX_FILE,
    Certificate,
    Inspection,
    InspectionRequest,
    Pair,
    Unusable,
    read_pair,
)
from webhook.certificates.inspect import inspect
from webhook.certificates.issue import Issued, create_authority, issue_leaf, load_authority, save

NOW = dt.datetime(2026, 1, 31, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
NAMES = ("hook.guard.svc", "localhost", "127.0.0.1")


@pytest.fixture(name="directory")
def good_directory(tmp_path: Path) -> Path:
    authority = create_authority(NOW)
    save(tmp_path, authority, CA_KEY, CA_CERTIFICATE)
    save(tmp_path, issue_leaf(authority, NAMES, 90, NOW))
    return tmp_path


def inspected(directory: Path, now: dt.datetime = NOW, names: Sequence[str] = ()) -> Certificate:
    return inspect(read_pair(directory), frozenset(names)).check_dates(now)


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(issued: Issued) -> bytes:
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return issued.key.private_bytes(pem, form, serialization.NoEncryption())


def signed(by: Issued, extension: x509.ExtensionType | None = None) -> tuple[bytes, bytes]:
    """A leaf of an hour with at most one extension, and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - HOUR)
        .not_valid_after(NOW + HOUR)
    )
    if extension is not None:
        builder = builder.add_extension(extension, critical=False)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate_pem(builder.sign(by.key, hashes.SHA256())), pem


def replace_leaf(directory: Path, extension: x509.ExtensionType | None) -> None:
    chain, key = signed(load_authority(directory), extension)
    (directory / "tls.crt").write_bytes(chain)
    (directory / "tls.key").write_bytes(key)


def test_a_good_pair(directory: Path) -> None:
    pair = inspected(directory, names=NAMES)
    assert pair.problems == ()
    assert pair.names == set(NAMES)
    assert pair.service_names == {"hook.guard.svc"}
    assert (pair.not_before, pair.not_after) == (NOW - HOUR, NOW + dt.timedelta(days=90))
    assert pair.ca_not_after == load_authority(directory).certificate.not_valid_after_utc


def test_it_is_due_after_two_thirds_of_its_life(directory: Path) -> None:
    pair = inspected(directory)
    life = pair.not_after - pair.not_before
    assert not pair.is_due(pair.not_before + life * 0.66)
    assert pair.is_due(pair.not_before + life * 0.67)


MALFORMED = {
    "names": x509.oid.ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    "usages": x509.oid.ExtensionOID.EXTENDED_KEY_USAGE,
    "constraints": x509.oid.ExtensionOID.BASIC_CONSTRAINTS,
}


@pytest.mark.parametrize("extension", MALFORMED)
def test_a_malformed_extension_is_a_finding(directory: Path, extension: str) -> None:
    replace_leaf(directory, x509.UnrecognizedExtension(MALFORMED[extension], b"\xff\xff"))
    with pytest.raises(Unusable, match=r"tls\.crt or ca\.crt cannot be decoded"):
        inspected(directory)


def append_another_ca(directory: Path) -> None:
    with (directory / "tls.crt").open("ab") as file:
        file.write(certificate_pem(create_authority(NOW).certificate))


def for_clients_only(directory: Path) -> None:
    replace_leaf(directory, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(lambda at: replace_leaf(at, None), "no subject alternative name", id="no names"),
        pytest.param(for_clients_only, "extended key usage lacks serverAuth", id="for clients only"),
        pytest.param(
            lambda at: save(at, create_authority(NOW), CA_KEY, CA_CERTIFICATE),
            "not signed by any certificate",
            id="another CA",
        ),
        pytest.param(
            lambda at: save(at, issue_leaf(load_authority(at), NAMES, -0.01, NOW)), "expired at", id="expired"
        ),
        pytest.param(lambda at: (at / "tls.key").chmod(0o620), "writable by others (mode 0620)", id="key writable"),
        pytest.param(append_another_ca, "certificate 1 is not signed by the one after it", id="broken chain"),
    ],
)
def test_a_pair_with_a_problem(directory: Path, change: Callable[[Path], object], problem: str) -> None:
    change(directory)
    assert problem in "; ".join(inspected(directory).problems)


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda directory: (directory / name).write_bytes(content)


def take_the_key_of_the_ca(directory: Path) -> None:
    (directory / "tls.key").write_bytes((directory / "ca.key").read_bytes())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(take_the_key_of_the_ca, "tls.key does not belong to tls.crt", id="another key"),
        pytest.param(write("tls.crt", b"x"), "tls.crt contains no certificate in PEM", id="a certificate that is none"),
        pytest.param(write("tls.key", b"x"), "tls.key is not a private key", id="a key that is none"),
        pytest.param(write("ca.crt", b"x"), "ca.crt contains no certificate in PEM", id="a CA that is none"),
        pytest.param(write("tls.crt", b"x" * (MAX_FILE + 1)), "is larger than", id="a large file"),
        pytest.param(lambda at: (at / "tls.key").unlink(), "tls.key: No such file", id="no key"),
        pytest.param(lambda at: (at / "..data").symlink_to("gone"), "tls.crt: No such file", id="a dangling link"),
    ],
)
def test_files_that_cannot_serve(directory: Path, change: Callable[[Path], object], problem: str) -> None:
    change(directory)
    with pytest.raises(Unusable, match=problem):
        inspected(directory)


def test_a_mounted_secret_is_read_through_its_link(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    mounted = tmp_path_factory.mktemp("mounted")
    (mounted / "..2026").symlink_to(directory)
    (mounted / "..data").symlink_to("..2026")
    assert read_pair(mounted) == read_pair(directory)


def test_missing_names(directory: Path) -> None:
    assert inspected(directory, names=["b.example", "a.example"]).problems == (
        "tls.crt lacks the name a.example",
        "tls.crt lacks the name b.example",
    )


def test_not_valid_yet(directory: Path) -> None:
    assert inspected(directory, NOW - 2 * HOUR).problems == ("tls.crt is valid only from 2026-01-31T11:00:00Z",)


def test_without_a_ca_file_the_issuer_is_not_checked(directory: Path) -> None:
    (directory / "ca.crt").unlink()
    pair = inspected(directory)
    assert (pair.problems, pair.ca_not_after) == ((), None)


def test_any_extended_key_usage_may_serve() -> None:
    authority = create_authority(NOW)
    chain, key = signed(authority, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]))
    assert inspect(Pair(chain, key)).problems == (
        "tls.crt has no subject alternative name; clients ignore the common name",
    )


def test_of_two_cas_the_one_that_signed_counts() -> None:
    old, new = create_authority(NOW - dt.timedelta(days=365)), create_authority(NOW)
    leaf = issue_leaf(old, NAMES, 90, NOW)
    both = certificate_pem(new.certificate) + certificate_pem(old.certificate)
    pair = inspect(Pair(certificate_pem(leaf.certificate), key_pem(leaf), both))
    assert (pair.problems, pair.ca_not_after) == ((), old.certificate.not_valid_after_utc)


def test_a_chain_ends_with_its_first_certificate_to_expire() -> None:
    root, intermediate = create_authority(NOW), ec.generate_private_key(ec.SECP256R1())
    end = NOW + dt.timedelta(days=10)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "intermediate")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(root.certificate.subject)
        .public_key(intermediate.public_key())
        .serial_number(1)
        .not_valid_before(NOW - HOUR)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root.key, hashes.SHA256())
    )
    leaf = issue_leaf(Issued(certificate, intermediate), NAMES, 5, NOW)
    chain = certificate_pem(leaf.certificate) + certificate_pem(certificate)
    pair = inspect(Pair(chain, key_pem(leaf), certificate_pem(root.certificate)))
    assert (pair.problems, pair.ca_not_after) == ((), end)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_inspected_or_unusable(chain: bytes, authorities: bytes) -> None:
    with pytest.raises(Unusable):
        inspect(Pair(chain, b"", authorities))


def asked(request: InspectionRequest, monkeypatch: pytest.MonkeyPatch) -> Inspection:
    """Run the module as a program, and return its answer."""
    answer = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(msgspec.json.encode(request))))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(answer, write_through=True))
    runpy.run_path(certificates.__file__, run_name="__main__")
    return msgspec.json.decode(answer.getvalue(), type=Inspection)


def test_the_program_answers_what_the_function_returns(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, names = read_pair(directory), frozenset({"absent.svc"})
    assert asked(InspectionRequest(pair, names), monkeypatch) == Inspection(inspect(pair, names))


def test_the_program_answers_why_a_pair_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = asked(InspectionRequest(Pair(b"", b""), frozenset()), monkeypatch)
    assert answer.certificate is None
    assert answer.unusable.startswith("tls.crt contains no certificate in PEM")


class _Issuer:
    """An issuer with a version and extensions, as the check reads it."""

    def __init__(self, version: x509.Version, **extensions: x509.ExtensionType) -> None:
        self.version = version
        self.extensions = x509.Extensions(
            [x509.Extension(one.oid, critical=True, value=one) for one in extensions.values()]
        )


USAGE = x509.KeyUsage(*(False,) * 9)


@pytest.mark.parametrize(
    ("issuer", "may_sign"),
    [
        pytest.param(_Issuer(x509.Version.v1), True, id="version 1, which has no extensions"),
        pytest.param(_Issuer(x509.Version.v3), False, id="no basic constraints"),
        pytest.param(_Issuer(x509.Version.v3, a=x509.BasicConstraints(ca=False, path_length=None)), False, id="a leaf"),
        pytest.param(_Issuer(x509.Version.v3, a=x509.BasicConstraints(ca=True, path_length=None)), True, id="a CA"),
        pytest.param(
            _Issuer(x509.Version.v3, a=x509.BasicConstraints(ca=True, path_length=None), b=USAGE),
            False,
            id="a CA that may not sign certificates",
        ),
    ],
)
def test_who_may_sign_certificates(issuer: x509.Certificate, may_sign: bool) -> None:
    assert certificates._may_sign(issuer) is may_sign
