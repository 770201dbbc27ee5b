"""Bundle and certificate against each other, on any day."""

import base64
import datetime as dt

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.doctor.shipped import NOW, entry
from webhook.certificates import CA_DAYS, MAX_FILE, Issued, create_authority, issue_leaf
from webhook.doctor.certificate import ServingCertificate, check_bundle, check_served
from webhook.doctor.configuration import ClientConfig, Entry, ServiceReference

AUTHORITY = create_authority(NOW)
NAME = "lease-webhook.lease-webhook.svc"


def bundle(authority: Issued = AUTHORITY) -> str:
    return base64.b64encode(authority.certificate.public_bytes(Encoding.PEM)).decode()


def trusting(ca_bundle: str | None, annotations: dict[str, str] | None = None) -> Entry:
    service = {"namespace": "lease-webhook", "name": "lease-webhook", "path": "/validate"}
    return entry(annotations, clientConfig={"service": service, "caBundle": ca_bundle})


def served(days: float, name: str = NAME) -> ServingCertificate:
    leaf = issue_leaf(AUTHORITY, [name], days, NOW)
    return ServingCertificate(leaf.certificate.public_bytes(Encoding.PEM), "Secret x/y")


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
def test_bundle(ca_bundle: str | None, days_later: int, checks: list[str]) -> None:
    later = NOW + dt.timedelta(days=days_later)
    assert [one.check for one in check_bundle(trusting(ca_bundle), later)] == checks


@pytest.mark.parametrize("annotation", ["cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle"])
def test_a_bundle_that_a_controller_fills_in_may_be_absent(annotation: str) -> None:
    assert list(check_bundle(trusting(None, {annotation: "x"}), NOW)) == []


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        pytest.param(served(90), "", id="good"),
        pytest.param(served(90, "other.svc"), "lacks the name lease-webhook.lease-webhook.svc", id="another name"),
        pytest.param(ServingCertificate(b"-", "Secret x/y"), "contains no certificate in PEM", id="no PEM"),
    ],
)
def test_served(one: ServingCertificate, problem: str) -> None:
    places = [diagnosis.place for diagnosis in check_served(trusting(bundle()), one, NOW)]
    assert len(places) == bool(problem)
    assert all(problem in place for place in places)


def test_another_authority_is_not_trusted() -> None:
    (diagnosis,) = check_served(trusting(bundle(create_authority(NOW))), served(90), NOW)
    assert diagnosis.check == "certificate-untrusted"
    assert "not signed by any certificate" in diagnosis.place


def test_the_leaf_ends_soon() -> None:
    (diagnosis,) = check_served(trusting(bundle()), served(13), NOW)
    assert diagnosis.check == "certificate-ends-soon"
    assert diagnosis.place == "Secret x/y, until 2026-12-04 (13 days)"


@pytest.mark.parametrize(
    ("config", "name"),
    [
        pytest.param(ClientConfig(service=ServiceReference("ns", "svc")), "svc.ns.svc", id="a Service"),
        pytest.param(ClientConfig(url="https://127.0.0.1:8443/validate"), "127.0.0.1", id="a URL"),
        pytest.param(ClientConfig(url="https://[::1]:8443/validate"), "::1", id="a URL, IPv6"),
        pytest.param(ClientConfig(url="https://[oops/validate"), "", id="a broken URL"),
        pytest.param(ClientConfig(), "", id="neither"),
    ],
)
def test_the_name_that_the_api_server_checks(config: ClientConfig, name: str) -> None:
    assert config.server_name == name


def test_without_a_name_only_trust_is_checked() -> None:
    nameless = entry(clientConfig={"url": "https://[oops", "caBundle": bundle()})
    assert list(check_served(nameless, served(90, "any.svc"), NOW)) == []
