"""The transport rows of the wire contract, over real sockets against the real server."""

import datetime as dt
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.factories import UID, make_lease, make_review
from tests.server import wire
from tests.server.harness import Server, client_context, make_certificates, running
from tests.waiting import wait_for
from webhook.certificates.issue import Issued, create_authority

REVIEW = json.dumps(make_review(new=make_lease())).encode()
SHORT = {"handshake_seconds": 3.0, "request_seconds": 4.0, "keep_alive_seconds": 5.0, "linger_seconds": 0.3}
"""The guards' times, shortened; `test_settings` holds those of production."""

HUGE_CHAIN = 400
ATTEMPTS = 5
CASES = wire.cases()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, wire.Heard]]:
    """Return what came back for every case."""
    directory = tmp_path_factory.mktemp("transport")
    with servers_of(directory, running) as servers:
        yield play_all(directory, servers)
        # After all that, an ordinary review is answered, and nothing is counted as still on its way.
        for name in ("plain", "mutual", "slow"):
            server = servers[name]
            if name != "mutual":
                assert server.post(REVIEW)[0] == 200
            wait_for("nothing in flight", lambda server=server: server.metric("lease_webhook_in_flight") == 0)
        assert not [line for line in servers["plain"].lines if "traceback" in line]
        assert all("put in by a test" in line["traceback"] for line in servers["bug"].said("internal error"))


@contextmanager
def servers_of(
    directory: Path, run: Callable[..., AbstractContextManager[Server]], guards: dict[str, float] = SHORT
) -> Iterator[dict[str, Server]]:
    """The servers that the cases name."""
    tls_dir = directory / "tls"
    make_certificates(tls_dir)
    authority = create_authority(dt.datetime.now(dt.UTC))
    client_ca = directory / "client-ca.crt"
    client_ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    write_clients(directory, authority)
    with ExitStack() as stack:
        plain = {"guards": guards, "workers": 1}
        mutual = {"client_ca": str(client_ca), "client_names": ["kube-apiserver"], **plain}
        yield {
            "plain": stack.enter_context(run(tls_dir, **plain)),
            "mutual": stack.enter_context(run(tls_dir, **mutual)),
            "bug": stack.enter_context(run(tls_dir, review="bug", **plain)),
            "slow": stack.enter_context(run(tls_dir, review="slow", **plain)),
        }


def play_all(
    directory: Path, servers: dict[str, Server], cases: Sequence[tuple[str, wire.Case]] = CASES
) -> dict[str, wire.Heard]:
    """Play all cases at once, because most of their time is waiting."""
    contexts = client_contexts(directory)

    def play(case: wire.Case) -> wire.Heard:
        what = wire.play(case, servers[case.get("server", "plain")].reviews, contexts, REVIEW)
        for _ in range(ATTEMPTS):
            # On a machine that is very busy, two seconds may be over before a review is answered.
            if case["expect"].get("incident") or b"deadline exceeded" not in what.data:
                break
            what = wire.play(case, servers[case.get("server", "plain")].reviews, contexts, REVIEW)
        return what

    with ThreadPoolExecutor(24) as pool:
        return dict(zip((name for name, _ in cases), pool.map(play, (case for _, case in cases)), strict=True))


@pytest.mark.parametrize(("name", "case"), [pytest.param(name, case, id=name) for name, case in CASES])
def test_row(name: str, case: wire.Case, heard: dict[str, wire.Heard]) -> None:
    check_all(case, heard[name])


def check_all(case: wire.Case, what: wire.Heard) -> None:
    """What was heard is what the row says."""
    expect = case["expect"]
    if case.get("connection") == "tcp":
        assert what.closed
        assert b"HTTP" not in what.data
        return
    answers = wire.parse(what.data, expect)
    if not answers:
        assert what.closed
        assert "closed" in _choices(expect["answer"])
        return
    for answer, wanted in zip(answers, expect.get("answers", [expect.get("answer")]), strict=True):
        check(answer, wanted, expect)
    if expect.get("closes"):
        assert what.closed
        assert answers[-1].headers["connection"] == "close"
    if not expect.get("continues", True):
        assert not what.data.startswith(b"HTTP/1.1 100 ")
    if expect.get("no_session"):
        assert not what.had_session


def check(answer: wire.Answer, wanted: Any, expect: dict[str, Any]) -> None:
    """One response is what the row says, and never more than a client may learn."""
    choices = _choices(wanted)
    if answer.status == 200:
        assert "verdict" in choices
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.body)["response"]["uid"] == UID
        return
    assert answer.status in choices
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.body.count(b"\n") == (0 if expect.get("bodiless") else 1)
    assert b"Traceback" not in answer.body
    assert b"put in by a test" not in answer.body
    assert (b"incident " in answer.body) == bool(expect.get("incident"))
    for header, value in expect.get("headers", {}).items():
        assert answer.headers[header] == value


def test_every_row_has_a_file() -> None:
    rows = {json.loads(path.read_text())["row"] for path in wire.ROWS.glob("*.json")}
    assert rows == {*range(1, 45), 92, 93}


def write_clients(directory: Path, authority: Issued) -> None:
    """Write a certificate for each kind of client that has one."""
    foreign = create_authority(dt.datetime.now(dt.UTC))
    clients = {
        "right": _client(authority, "kube-apiserver"),
        "somebody": _client(authority, "somebody-else"),
        "foreign": _client(foreign, "kube-apiserver"),
        "expired": _client(authority, "kube-apiserver", days=-1),
        "huge": _client(authority, "kube-apiserver")
        + authority.certificate.public_bytes(serialization.Encoding.PEM) * HUGE_CHAIN,
    }
    for name, pem in clients.items():
        (directory / f"{name}.pem").write_bytes(pem)


def client_contexts(directory: Path) -> dict[str, ssl.SSLContext]:
    """A context for each kind of client."""
    ca = directory / "tls" / "ca.crt"
    contexts = {"plain": client_context(ca), "1.2": client_context(ca)}
    contexts["1.2"].maximum_version = ssl.TLSVersion.TLSv1_2
    for path in directory.glob("*.pem"):
        contexts[path.stem] = client_context(ca)
        contexts[path.stem].load_cert_chain(path)
    for context in contexts.values():
        context.check_hostname = False
    return contexts


def _client(authority: Issued, name: str, days: float = 1) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(now + dt.timedelta(days=days))
        .sign(authority.key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key_pem + certificate.public_bytes(serialization.Encoding.PEM)


def _choices(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]
