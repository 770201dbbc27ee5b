"""The caBundle on any day."""

import base64
import datetime as dt

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.doctor.shipped import NOW, entry
from webhook.certificate_files import MAX_FILE
from webhook.certificates import CA_DAYS, create_authority
from webhook.doctor.checks import check_bundle
from webhook.doctor.documents import Entry

AUTHORITY = create_authority(NOW)


def bundle() -> str:
    return base64.b64encode(AUTHORITY.certificate.public_bytes(Encoding.PEM)).decode()


def trusting(ca_bundle: str | None, annotations: dict[str, str] | None = None) -> Entry:
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
def test_bundle(ca_bundle: str | None, days_later: int, checks: list[str]) -> None:
    later = NOW + dt.timedelta(days=days_later)
    assert [one.check for one in check_bundle(trusting(ca_bundle), later)] == checks


@pytest.mark.parametrize("annotation", ["cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle"])
def test_a_bundle_that_a_controller_fills_in_may_be_absent(annotation: str) -> None:
    assert list(check_bundle(trusting(None, {annotation: "x"}), NOW)) == []
