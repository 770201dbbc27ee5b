"""Making certificates, and saying what is wrong with them."""

import base64
import datetime as dt
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.server.harness import NAMES, make_certificates
from webhook.certificates.inspect import LARGEST_FILE, Certificate, Unusable, inspect, read_pair
from webhook.certificates.issue import create_authority, issue_leaf, load_authority, save_authority, save_leaf
from webhook.cli.main import main

NOW = dt.datetime.now(dt.UTC)
HOUR = dt.timedelta(hours=1)


def looked_at(directory: Path, now: dt.datetime = NOW, names: frozenset[str] = frozenset()) -> Certificate:
    return inspect(read_pair(directory), now, names)


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_leaf_and_ca_are_what_api_servers_want(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    ca, leaf = certificate(tmp_path / "ca.crt"), certificate(tmp_path / "tls.crt")
    assert leaf.issuer == ca.subject != leaf.subject
    assert looked_at(tmp_path).names == set(NAMES)
    assert looked_at(tmp_path).problems == ()
    for one in (ca, leaf):
        key = one.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert isinstance(one.signature_hash_algorithm, hashes.SHA256)
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    assert abs(life - dt.timedelta(days=90) - HOUR) < dt.timedelta(seconds=2)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for key_file in ("ca.key", "tls.key"):
        assert stat.S_IMODE((tmp_path / key_file).stat().st_mode) == 0o600


def test_a_leaf_never_outlives_its_ca() -> None:
    authority = create_authority(NOW)
    leaf = issue_leaf(authority, NAMES, 36500, NOW)
    assert leaf.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def lose_the_names(directory: Path) -> None:
    authority = load_authority(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - HOUR)
        .not_valid_after(NOW + HOUR)
        .sign(authority.key, hashes.SHA256())
    )
    (directory / "tls.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "tls.key").write_bytes(pem)


def change_the_ca(directory: Path) -> None:
    save_authority(directory, create_authority(NOW))


def change_the_key(directory: Path) -> None:
    (directory / "tls.key").write_bytes((directory / "ca.key").read_bytes())


def let_it_expire(directory: Path) -> None:
    save_leaf(directory, issue_leaf(load_authority(directory), NAMES, -0.01, NOW))


def open_the_key(directory: Path) -> None:
    (directory / "tls.key").chmod(0o666)


def append_a_stranger(directory: Path) -> None:
    with (directory / "tls.crt").open("ab") as file:
        file.write(create_authority(NOW).certificate.public_bytes(serialization.Encoding.PEM))


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        (directory / name).write_bytes(content)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(lose_the_names, "no subject alternative name", id="no names"),
        pytest.param(change_the_ca, "not signed by any certificate in ca.crt", id="another CA"),
        pytest.param(let_it_expire, "expired at", id="expired"),
        pytest.param(open_the_key, "may be written by others", id="key open to all"),
        pytest.param(append_a_stranger, "is not signed by the one after it", id="broken chain"),
    ],
)
def test_a_pair_with_a_problem(tmp_path: Path, change: Callable[[Path], None], problem: str) -> None:
    make_certificates(tmp_path)
    change(tmp_path)
    assert problem in "; ".join(looked_at(tmp_path).problems)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(change_the_key, "tls.key does not belong to tls.crt", id="another key"),
        pytest.param(write("tls.crt", b"nonsense"), "tls.crt holds no certificate", id="nonsense as certificate"),
        pytest.param(write("tls.key", b"nonsense"), "tls.key is not a private key", id="nonsense as key"),
        pytest.param(write("ca.crt", b"nonsense"), "ca.crt holds no certificate", id="nonsense as CA"),
        pytest.param(write("tls.crt", b"x" * (LARGEST_FILE + 1)), "is larger than", id="a crafted large file"),
        pytest.param(lambda directory: (directory / "tls.key").unlink(), "tls.key: No such file", id="no key"),
    ],
)
def test_files_that_cannot_serve(tmp_path: Path, change: Callable[[Path], None], problem: str) -> None:
    make_certificates(tmp_path)
    change(tmp_path)
    with pytest.raises(Unusable, match=problem):
        looked_at(tmp_path)


def test_names_that_must_be_there(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert looked_at(tmp_path, names=frozenset({"other.example"})).problems == ("tls.crt lacks the name other.example",)


def test_not_valid_yet(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert "valid only from" in looked_at(tmp_path, NOW - 2 * HOUR).problems[0]


def test_without_a_ca_file_the_leaf_is_taken_by_itself(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    (tmp_path / "ca.crt").unlink()
    assert looked_at(tmp_path).problems == ()


def test_certs_makes_renews_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "certs"
    assert main(["certs", str(directory), "--san", "hook.example", "--namespace", "guard"]) == 0
    assert "hook.example" in capsys.readouterr().out
    ca, leaf = (directory / "ca.crt").read_bytes(), (directory / "tls.crt").read_bytes()
    assert {"lease-webhook.guard.svc", "hook.example"} <= looked_at(directory).names
    assert main(["certs", str(directory)]) == 0
    assert (directory / "ca.crt").read_bytes() == ca
    assert (directory / "tls.crt").read_bytes() != leaf
    assert main(["certs", str(directory), "--new-ca"]) == 0
    assert (directory / "ca.crt").read_bytes() != ca
    assert looked_at(directory).problems == ()


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
        (("--within", "9d"), 0),
        (("--within", "241h"), 1),
        (("--within", "11d", "--service", "other"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_check_of_names_and_of_a_time(
    args: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["certs", str(tmp_path), "--service", "foo", "--namespace", "bar", "--san", "webhook.example"]
    assert main([*made, "--days", "10"]) == 0
    capsys.readouterr()
    assert main(["certs", "--check", str(tmp_path), *args]) == code
    text = capsys.readouterr().out
    assert main(["certs", "--check", str(tmp_path), *args, "--format", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == ("good", "renew soon", "unusable")[code]
    assert text.startswith(f"{found['state']}: ")
    assert bool(found["problems"]) == (code == 2)
    assert "foo.bar.svc" in found["names"]
    assert found["notAfter"].endswith("Z")


def test_a_life_of_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["certs", str(tmp_path), "--days", "1"])
    assert main(["certs", "--check", str(tmp_path)]) == 0
    assert "(1 day)" in capsys.readouterr().out


@pytest.mark.parametrize("args", [("--within", "1d"), ("--format", "json")], ids=" ".join)
def test_options_of_check_need_it(args: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", str(tmp_path), *args]) == 2
    assert "belong to --check" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
