"""The caBundle and the served certificate against each other, on any day."""

import base64
import datetime as dt
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.doctor.shipped import NOW, entry
from webhook.api_server.doctor.certificate import check_bundle, examine_certificate
from webhook.api_server.doctor.documents import Documents, WebhookEntry
from webhook.certificates.files import MAX_FILE
from webhook.certificates.issue import CA_DAYS, Issued, create_authority, issue_leaf

AUTHORITY = create_authority(NOW)
NAME = "lease-webhook.lease-webhook.svc"
DAY = dt.timedelta(days=1)


def bundle(authority: Issued = AUTHORITY) -> str:
    return base64.b64encode(authority.certificate.public_bytes(Encoding.PEM)).decode()


def trusting(ca_bundle: str | None, annotations: dict[str, str] | None = None) -> WebhookEntry:
    service = {"namespace": "lease-webhook", "name": "lease-webhook", "path": "/validate"}
    return entry(annotations, clientConfig={"service": service, "caBundle": ca_bundle})


@pytest.mark.parametrize(
    ("ca_bundle", "days_later", "checks"),
    [
        pytest.param(bundle(), 0, [], id="good"),
        pytest.param("\n".join([bundle()[:76], bundle()[76:]]), 0, [], id="wrapped, as kustomize writes it"),
        pytest.param(bundle(), CA_DAYS - 10, ["certificate-ends-soon"], id="ten days left"),
        pytest.param(bundle(), CA_DAYS + 1, ["ca-bundle-expired"], id="over"),
        pytest.param("", 0, ["ca-bundle-unreadable"], id="empty"),
        pytest.param("%%%", 0, ["ca-bundle-unreadable"], id="no base64"),
        pytest.param("é", 0, ["ca-bundle-unreadable"], id="no ASCII"),
        pytest.param("Zm9v", 0, ["ca-bundle-unreadable"], id="no PEM"),
        pytest.param("A" * 2 * MAX_FILE, 0, ["ca-bundle-unreadable"], id="too long"),
        pytest.param(None, 0, ["ca-bundle-missing"], id="absent"),
    ],
)
def test_what_is_wrong_with_a_ca_bundle(ca_bundle: str | None, days_later: int, checks: list[str]) -> None:
    later = NOW + dt.timedelta(days=days_later)
    assert [one.check for one in check_bundle(trusting(ca_bundle), later)] == checks


@pytest.mark.parametrize("annotation", ["cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle"])
def test_a_bundle_that_a_controller_fills_in_may_be_absent(annotation: str) -> None:
    assert list(check_bundle(trusting(None, {annotation: "x"}), NOW)) == []


def pem(issued: Issued) -> bytes:
    return issued.certificate.public_bytes(Encoding.PEM)


def key_of(issued: Issued) -> bytes:
    return issued.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def leaf(*names: str, days: float = 90, by: Issued = AUTHORITY, at: dt.datetime = NOW) -> Issued:
    return issue_leaf(by, names or [NAME], days, at)


def secret(chain: bytes, name: str = "lease-webhook-tls", key: bytes = b"", namespace: str = "lease-webhook") -> Any:
    data = {"tls.crt": chain} | ({"tls.key": key} if key else {})
    encoded = {file: base64.b64encode(content).decode() for file, content in data.items()}
    return {"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": encoded}


def deployment(mounted: str) -> Any:
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "tls", "secret": {"secretName": mounted}}]
    metadata = {"name": "lease-webhook", "namespace": "lease-webhook"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": {"volumes": volumes}}}}


def intermediate(days: int = 365, *, may_sign: bool = True, again: Issued | None = None) -> Issued:
    """A certificate below AUTHORITY that may sign others, or may not; `again` for the same name and key."""
    authority = again or create_authority(NOW)
    builder = x509.CertificateBuilder(
        issuer_name=AUTHORITY.certificate.subject,
        subject_name=authority.certificate.subject,
        public_key=authority.key.public_key(),
        serial_number=1,
        not_valid_before=NOW - DAY,
        not_valid_after=NOW + days * DAY,
    ).add_extension(x509.BasicConstraints(ca=may_sign, path_length=None), critical=True)
    return Issued(builder.sign(AUTHORITY.key, hashes.SHA256()), authority.key)


GOOD, OTHER, BELOW, POWERLESS = leaf(), leaf(), intermediate(), intermediate(may_sign=False)
SHORTER = intermediate(days=30, again=BELOW)


@pytest.mark.parametrize(
    ("served", "later", "problem"),
    [
        pytest.param(secret(pem(GOOD)), 0 * DAY, "", id="good"),
        pytest.param(secret(pem(GOOD), key=key_of(GOOD)), 0 * DAY, "", id="good, with its key"),
        pytest.param(secret(pem(leaf("*.lease-webhook.svc"))), 0 * DAY, "", id="a wildcard for its first label"),
        pytest.param(secret(pem(leaf("Lease-Webhook.Lease-Webhook.svc"))), 0 * DAY, "", id="another case"),
        pytest.param(secret(pem(leaf(by=BELOW)) + pem(BELOW)), 0 * DAY, "", id="signed by an intermediate"),
        pytest.param(secret(pem(leaf("*.svc"))), 0 * DAY, f"lacks the name {NAME}", id="a wildcard for two labels"),
        pytest.param(secret(pem(leaf("other.svc"))), 0 * DAY, f"lacks the name {NAME}", id="another name"),
        pytest.param(secret(pem(GOOD), key=key_of(OTHER)), 0 * DAY, "tls.key does not belong", id="another key"),
        pytest.param(secret(pem(leaf(by=BELOW))), 0 * DAY, "not signed by any", id="without its intermediate"),
        pytest.param(
            secret(pem(leaf(by=POWERLESS)) + pem(POWERLESS)), 0 * DAY, "not signed by the one after", id="no authority"
        ),
        pytest.param(
            secret(pem(leaf(by=create_authority(NOW)))),
            0 * DAY,
            "not signed by any certificate in the caBundle",
            id="another CA",
        ),
        pytest.param(secret(pem(GOOD)), 91 * DAY, "expired at 2027-02-19", id="over"),
        pytest.param(secret(pem(GOOD)), -1 * DAY, "valid only from 2026-11-20", id="not yet valid"),
        pytest.param(
            secret(pem(leaf(by=BELOW)) + pem(SHORTER)), 31 * DAY, "one between, expired", id="the intermediate is over"
        ),
        pytest.param(secret(b"-"), 0 * DAY, "contains no certificate in PEM", id="no PEM"),
        pytest.param(secret(b"x" * (MAX_FILE + 1)), 0 * DAY, f"larger than {MAX_FILE} bytes", id="too large"),
    ],
)
def test_a_certificate_that_the_api_server_refuses_is_a_finding(served: Any, later: dt.timedelta, problem: str) -> None:
    _, findings, unknown = examine_certificate(trusting(bundle()), Documents([served]), NOW + later)
    assert [(one.check, problem in one.place) for one in findings] == [("certificate-untrusted", True)] * bool(problem)
    assert unknown == ""


def test_a_certificate_that_ends_within_two_weeks_is_a_finding() -> None:
    (finding,) = examine_certificate(trusting(bundle()), Documents([secret(pem(leaf(days=13)))]), NOW)[1]
    assert (finding.check, finding.place) == (
        "certificate-ends-soon",
        "Secret lease-webhook/lease-webhook-tls, until 2026-12-04",
    )


def test_text_of_a_secret_is_read_too() -> None:
    document = secret(b"") | {"stringData": {"tls.crt": pem(leaf("other.svc")).decode()}}
    (finding,) = examine_certificate(trusting(bundle()), Documents([document]), NOW)[1]
    assert finding.check == "certificate-untrusted"


def test_what_is_no_base64_is_no_certificate() -> None:
    document = secret(b"") | {"data": {"tls.crt": "%%%"}}
    (finding,) = examine_certificate(trusting(bundle()), Documents([document]), NOW)[1]
    assert "contains no certificate" in finding.place


def test_of_several_secrets_the_mounted_one_is_served() -> None:
    objects = [secret(pem(leaf("other.svc")), "old"), secret(pem(GOOD), "new"), deployment("new")]
    assert examine_certificate(trusting(bundle()), Documents(objects), NOW)[1:] == ((), "")


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], "it is not in the input", id="no Secret"),
        pytest.param([secret(pem(GOOD), namespace="shop")], "it is not in the input", id="of another namespace"),
        pytest.param([secret(pem(GOOD)), deployment("other")], "it is not in the input", id="another one is mounted"),
        pytest.param([secret(pem(GOOD)), secret(pem(GOOD), "b")], "it may be in any of 2 Secrets", id="two Secrets"),
    ],
)
def test_a_certificate_that_is_not_shown_is_unknown(objects: list[Any], reason: str) -> None:
    _, findings, unknown = examine_certificate(trusting(bundle()), Documents(objects), NOW)
    assert (findings, reason in unknown) == ((), True)


def test_what_a_controller_fills_in_later_is_unknown_and_the_rest_examined() -> None:
    later = trusting(None, {"cert-manager.io/inject-ca-from": "x"})
    _, findings, unknown = examine_certificate(later, Documents([secret(pem(leaf("other.svc")))]), NOW)
    assert [one.check for one in findings] == ["certificate-untrusted"]
    assert "by which CA it is signed, as cert-manager.io/inject-ca-from fills in the caBundle later" in unknown


@pytest.mark.parametrize(
    ("url", "address"),
    [
        pytest.param("https://hook.example:8443/validate", "hook.example", id="a name"),
        pytest.param("https://[::1]:8443/validate", "::1", id="an address"),
        pytest.param("https://[oops/validate", "the URL", id="a broken URL"),
    ],
)
def test_what_is_served_at_a_url_is_unknown(url: str, address: str) -> None:
    outside = entry(clientConfig={"url": url, "caBundle": bundle()})
    named, findings, unknown = examine_certificate(outside, Documents([secret(pem(GOOD))]), NOW)
    assert (named, findings, "it is not in the input" in unknown) == (address, (), True)


def test_a_secret_of_something_else_is_no_certificate() -> None:
    other = {"kind": "Secret", "metadata": {"name": "token", "namespace": "lease-webhook"}, "data": {"token": "eA=="}}
    _, findings, unknown = examine_certificate(trusting(bundle()), Documents([other]), NOW)
    assert findings == ()
    assert "was not examined" in unknown
