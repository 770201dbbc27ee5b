"""Certificates change while clients shake hands, as a kubelet changes a mounted Secret; nobody notices."""

import datetime as dt
import shutil
import socket
import ssl
import time
from pathlib import Path
from typing import Any

from cryptography import x509

from tests.server.conftest import Start
from tests.server.harness import NAMES, Server, client_context, make_certificates
from tests.server.traffic import REVIEW, Traffic
from tests.waiting import wait_for
from webhook.certificates.issue import Issued, issue_leaf, save

POLL = 0.1
QUICK = {"certificate_poll_seconds": POLL, "policy_poll_seconds": 0.1}
SWAPS = 12
MISMATCHED = 6


class Secret:
    """A directory that changes as the kubelet changes one: new files beside the old, then one link."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        first = directory / "version-0"
        self.authority: Issued = make_certificates(first)
        (directory / "..data").symlink_to(first.name)
        for file in first.iterdir():
            (directory / file.name).symlink_to(Path("..data") / file.name)
        self._versions = 0

    def swap(self, *, names: list[str] = NAMES, mismatched: bool = False, days: float = 90) -> int:
        """A new leaf under the same CA; the old files go away at once. Gives its serial number."""
        leaf = issue_leaf(self.authority, names, days, dt.datetime.now(dt.UTC))
        other = issue_leaf(self.authority, names, days, dt.datetime.now(dt.UTC))
        old = (self.directory / "..data").resolve()
        self._versions += 1
        new = self.directory / f"version-{self._versions}"
        shutil.copytree(old, new)
        save(new, type(leaf)(leaf.certificate, other.key) if mismatched else leaf)
        link = self.directory / "..data_new"
        link.symlink_to(new.name)
        link.replace(self.directory / "..data")
        shutil.rmtree(old)
        return leaf.certificate.serial_number


def refusals(server: Server, problem: str) -> list[str]:
    """Return what workers reported about certificates that they rejected."""
    lines = server.said("certificate rejected; the last good one stays in use")
    return [line["problem"] for line in lines if problem in line["problem"]]


def served(server: Server) -> int:
    """Serial number of the certificate that a new connection gets."""
    context = client_context(server.ca)
    with (
        socket.create_connection(server.reviews) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
        assert certificate is not None
        return x509.load_der_x509_certificate(certificate).serial_number


def test_many_swaps_and_one_bad_pair_under_handshaking_clients(start: Start, tmp_path: Path) -> None:
    secret = Secret(tmp_path)
    with start(tmp_path, workers=2, **QUICK) as server:
        before = server.connect()
        before.connect()
        with Traffic(server, threads=2, keep=False) as traffic:
            good = 0
            for number in range(SWAPS):
                if number == MISMATCHED:
                    secret.swap(mismatched=True)
                    wait_for("both workers to refuse it", lambda: len(refusals(server, "does not belong")) == 2)
                    assert served(server) == good
                    continue
                good = secret.swap()
                wait_for("the new certificate", lambda good=good: {served(server) for _ in range(6)} == {good})
        assert traffic.handshakes_failed == traffic.lost == []
        assert traffic.answered > SWAPS
        # A connection from before all of that still works.
        before.request("POST", "/validate", REVIEW, {"Content-Type": "application/json"})
        assert before.getresponse().status == 200
        before.close()
        refused = 'lease_webhook_reloads_total{result="failure",what="certificate"}'
        # A worker that looks while the old files are being deleted may have logged that as well.
        assert server.metric(refused) >= 2


BAD_PAIRS: dict[str, dict[str, Any]] = {
    "lacks the name lease-webhook.lease-webhook.svc": {"names": ["localhost"]},
    "expired": {"days": -0.01},
    "does not belong to": {"mismatched": True},
}
"""The keywords of `swap`, by the problem."""


def test_a_bad_pair_is_refused_and_a_good_one_taken_later(start: Start, tmp_path: Path) -> None:
    secret = Secret(tmp_path)
    with start(tmp_path, **QUICK) as server:
        good = served(server)
        for problem, change in BAD_PAIRS.items():
            secret.swap(**change)
            wait_for("the refusal", lambda problem=problem: refusals(server, problem))
            assert served(server) == good
            status, page = server.probe("/readyz")
            assert (status, page.splitlines()[0]) == (200, "ok")
            assert page.splitlines()[1].startswith("warning: certificate: ")
            assert problem in page
            good = secret.swap()
            wait_for("the good certificate", lambda good=good: served(server) == good)


def test_missing_files_change_nothing(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    with start(tmp_path / "tls", **QUICK) as server:
        first = served(server)
        (tmp_path / "tls" / "tls.key").unlink()
        wait_for("the complaint", lambda: refusals(server, "tls.key"))
        assert served(server) == first


def test_a_certificate_that_expires_soon_is_served_and_reported(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path, days=0.5)
    with start(tmp_path, **QUICK) as server:
        server.wait_for_line("certificate expires soon")
        assert server.post(REVIEW)[0] == 200
        status, page = server.probe("/readyz")
        assert (status, page.splitlines()[0]) == (200, "ok")
        assert "less than 24 hours" in page.splitlines()[1]
        assert server.probe("/livez") == (200, "ok\n")
        ends = server.metric('lease_webhook_certificate_not_after_seconds{certificate="serving"}')
        assert abs(ends - time.time() - 43200) < 600


def test_a_certificate_that_has_expired_at_the_start_is_served_and_not_ready(start: Start, tmp_path: Path) -> None:
    """Better files are taken when they come; a process that refused to start would come back much later."""
    authority = make_certificates(tmp_path, days=-0.01)
    with start(tmp_path, **QUICK) as server:
        status, why = server.probe("/readyz")
        assert status == 503
        assert "expired" in why
        save(tmp_path, issue_leaf(authority, NAMES, 90, dt.datetime.now(dt.UTC)))
        wait_for("the new certificate", lambda: server.probe("/readyz")[0] == 200)
        assert server.post(REVIEW)[0] == 200


def test_the_kill_switch_is_reported_until_it_is_removed(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\nmode: off\n")
    with start(tmp_path, policy=str(policy), **QUICK) as server:
        server.wait_for_line("the policy is off: every write is allowed")
        warning = "warning: policy: mode is off, every write is allowed; remove it to evaluate writes again"
        assert server.probe("/readyz") == (200, f"ok\n{warning}\n")
        policy.write_text("apiVersion: lease-webhook/v1\n")
        server.wait_for_line("policy in use")
        assert server.probe("/readyz") == (200, "ok\n")


def test_a_policy_file_that_changes(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\npreset: standard\n")
    with start(tmp_path, policy=str(policy), **QUICK) as server:
        policy.write_text("apiVersion: lease-webhook/v1\npreset: strict\n")
        assert server.wait_for_line("policy in use", 2)[1]["preset"] == "strict"
        policy.write_text("preset: nonsense\n")
        server.wait_for_line("policy rejected; the last good one stays in use")
        status, page = server.probe("/readyz")
        assert (status, page.splitlines()[0]) == (200, "ok"), "every replica mounts the same file"
        assert page.splitlines()[1].startswith("warning: policy: ")
        assert page.splitlines()[1].endswith("; the last good one is in use")
        assert b"strict" in server.post(REVIEW)[1]
        info = [
            line for line in server.probe("/metrics")[1].splitlines() if line.startswith("lease_webhook_policy_info{")
        ]
        assert len(info) == 1
        assert 'preset="strict"' in info[0]


def test_tls_floor_and_no_renegotiation(tmp_path: Path) -> None:
    from webhook.server.certificate_reload import CertificateReloader  # noqa: PLC0415 - only this test looks inside

    make_certificates(tmp_path)
    certificates = CertificateReloader(tmp_path, tmp_path)
    certificates.start()
    context = certificates.make_listener_context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_an_expired_certificate_at_the_start_is_not_called_the_last_good_one(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path, days=1, age=2)
    with start(tmp_path, **QUICK) as server:
        server.wait_for_line("certificate rejected; there is no good one, so API servers refuse this one")
        assert not server.said("certificate rejected; the last good one stays in use")
        assert not server.said("certificate expires soon")
        assert server.probe("/readyz")[0] == 503
