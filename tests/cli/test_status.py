"""`lease-webhook status` with a kubectl that answers from files, and pods that expose metrics."""

import datetime as dt
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.test_certificate import bundle
from tests.doctor.test_in_force import deployed, metrics, named
from tests.json_contract import problems
from webhook.certificates.issue import CA_DAYS, Issued, create_authority, issue_leaf, save
from webhook.cli.main import main

KUBECTL = """\
#!{python} -IS
import json, sys
answers = json.load(open({answers!r}))
asked = sys.argv[2] if sys.argv[1] == "get" else sys.argv[1]
if any(word.startswith("service/") for word in sys.argv):
    asked = "to-the-service"
code, out, err = answers.get(asked, (1, "", "Error: Forbidden"))
if sys.argv[1] == "create":
    assert json.load(sys.stdin)["metadata"]["name"] == "lease-webhook-proof"
sys.stdout.write(out)
sys.stdout.flush()
sys.stderr.write(err)
sys.exit(code)
"""
REFUSED = (1, "", "The Lease is invalid: ... (lease webhook, rule time-unreadable)\n")
NO_CHECK = {"check": "", "risk": "", "fix": ""}
STORED = (0, "created", "")
"""The answer to the dry run where nothing reviews it."""
Install = Callable[..., Path]


@pytest.fixture
def pod() -> Iterator[int]:
    """The port of a pod that exposes metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(metrics().encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def cluster(pod: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make a kubectl that answers as that of a whole installation, but for what is given."""

    def install(**answers: tuple[int, str, str]) -> Path:
        configuration, *others = deployed()
        running = named("Pod", "lease-webhook-1")
        running["metadata"]["labels"] = {"app.kubernetes.io/name": "lease-webhook"}
        known = {
            "create": REFUSED,
            "validatingwebhookconfigurations": listing(configuration),
            "validatingadmissionpolicies,validatingadmissionpolicybindings": listing(),
            "mutatingadmissionpolicies,mutatingadmissionpolicybindings": (
                1,
                "",
                "error: the server doesn't have a resource type",
            ),
            "namespaces": listing(),
            "deployments,statefulsets,pods,configmaps": listing(*others, running),
            "services,endpointslices": listing(service(), endpoints(True, True)),
            "auth": who("ann"),
            "port-forward": (0, f"Forwarding from 127.0.0.1:{pod} -> 8081\n", ""),
        }
        file = tmp_path / "answers.json"
        file.write_text(
            json.dumps(
                known | {("port-forward" if name == "port_forward" else name): one for name, one in answers.items()}
            )
        )
        program = tmp_path / "kubectl"
        program.write_text(KUBECTL.format(python=sys.executable, answers=str(file)))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return file

    return install


def service(port: int = 443) -> dict[str, Any]:
    return named("Service", "lease-webhook", spec={"ports": [{"name": "webhook", "port": port, "protocol": "TCP"}]})


def endpoints(*ready: bool, port: str = "webhook") -> dict[str, Any]:
    """An EndpointSlice of that Service."""
    endpoint_slice = named("EndpointSlice", "lease-webhook-x", ports=[{"name": port, "port": 8443}])
    endpoint_slice["metadata"]["labels"] = {"kubernetes.io/service-name": "lease-webhook"}
    return endpoint_slice | {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": one}} for one in ready]}


def who(name: str, *groups: str) -> tuple[int, str, str]:
    return (
        0,
        json.dumps({"kind": "SelfSubjectReview", "status": {"userInfo": {"username": name, "groups": groups}}}),
        "",
    )


def listing(*objects: dict[str, Any]) -> tuple[int, str, str]:
    return (
        0,
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [{"apiVersion": "v1"} | one for one in objects]}),
        "",
    )


def test_a_whole_installation_is_in_force(cluster: Install, capsys: pytest.CaptureFixture[str]) -> None:
    cluster()
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("in force: the webhook refused a lease that nothing else refuses (a dry run)\n")
    assert "\n   pods           2 of 2 ready\n" in out
    assert "in lease-webhook-1, as in the ConfigMap" in out
    assert "verdicts       1,204 allowed, 0 warned, 3 denied" in out
    assert "not known" not in out


def test_a_recorder_is_not_asked_for_metrics(cluster: Install, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = named("StatefulSet", "lease-recorder", spec={"replicas": 1}, status={"readyReplicas": 1})
    its_pod = named("Pod", "lease-recorder-0")
    its_pod["metadata"]["labels"] = {"app.kubernetes.io/name": "lease-recorder"}
    answers = {"deployments,statefulsets,pods,configmaps": listing(*deployed()[1:], recorder, its_pod)}
    cluster(port_forward=(1, "", "no port is exposed"), **answers)
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "\n   recorder       1 of 1 ready\n" in out
    assert "not known" not in out


def test_json_has_the_same(cluster: Install, capsys: pytest.CaptureFixture[str]) -> None:
    cluster()
    assert main(["status", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert problems("status", printed) == []
    assert printed["inForce"] is True
    assert {"subject": "pods", "text": "2 of 2 ready", "isWrong": False, **NO_CHECK} in printed["facts"]


class Pods:
    """Pods that serve TLS to whom kubectl forwards, and a configuration that calls them."""

    def __init__(self, directory: Path) -> None:
        self.now = dt.datetime.now(dt.UTC)
        self.authority = create_authority(self.now)
        self._directory = directory
        self.port = 0
        self.configuration = deployed()[0]
        self.configuration["webhooks"][0]["clientConfig"]["caBundle"] = bundle(self.authority)

    @contextmanager
    def serving(
        self, name: str = "lease-webhook.lease-webhook.svc", *, by: Issued | None = None, age: int = 0
    ) -> Iterator[None]:
        """Serve a certificate of 90 days that is `age` days old."""
        save(self._directory, issue_leaf(by or self.authority, [name], 90, self.now - dt.timedelta(days=age)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._directory / "tls.crt", self._directory / "tls.key")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            thread = threading.Thread(target=self._accept, args=(listener, context))
            thread.start()
            yield
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    @staticmethod
    def _accept(listener: socket.socket, context: ssl.SSLContext) -> None:
        with suppress(OSError):
            while True:
                connection = listener.accept()[0]
                # A client that refuses the certificate says so, and ends the handshake.
                with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
                    secure.recv(1)

    def answers(self, **changes: tuple[int, str, str]) -> dict[str, tuple[int, str, str]]:
        """Return the answers of kubectl about these objects while nothing reviews a write."""
        return {
            "create": STORED,
            "validatingwebhookconfigurations": listing(self.configuration),
            "to-the-service": (0, f"Forwarding from 127.0.0.1:{self.port} -> 8443\n", ""),
            **changes,
        }


@pytest.fixture
def pods(tmp_path: Path) -> Pods:
    return Pods(tmp_path)


STORES = "not in force: the API server would store a lease that the webhook refuses (a dry run): "


def wrong(capsys: pytest.CaptureFixture[str]) -> tuple[str, list[str]]:
    """The reason why nothing is in force, and the checks that have a finding, from what was printed as JSON."""
    printed = json.loads(capsys.readouterr().out)
    assert problems("status", printed) == []
    assert printed["inForce"] is False
    return printed["reason"], [one["check"] for one in printed["facts"] if one["isWrong"]]


@pytest.mark.parametrize(
    ("objects", "check", "place"),
    [
        pytest.param(
            [service(), endpoints(False, False)],
            "no-ready-endpoint",
            "Service lease-webhook/lease-webhook: none of 2 endpoints is ready",
            id="no pod is ready",
        ),
        pytest.param(
            [service(), endpoints()],
            "no-ready-endpoint",
            "Service lease-webhook/lease-webhook: it has no endpoints",
            id="there are no pods",
        ),
        pytest.param(
            [service()],
            "no-ready-endpoint",
            "Service lease-webhook/lease-webhook: it has no endpoints",
            id="there is no EndpointSlice",
        ),
        pytest.param(
            [service(8443), endpoints(True)],
            "service-port-missing",
            "webhooks[0].clientConfig.service.port: 443; Service lease-webhook/lease-webhook has 8443",
            id="the Service has another port",
        ),
        pytest.param(
            [service(), endpoints(True, port="health")],
            "target-port-missing",
            "Service lease-webhook/lease-webhook: no ready endpoint has the port webhook",
            id="the pods have no such port",
        ),
        pytest.param(
            [],
            "service-missing",
            "webhooks[0].clientConfig.service: lease-webhook/lease-webhook does not exist",
            id="there is no Service",
        ),
    ],
)
def test_a_service_that_leads_nowhere_is_the_cause(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str], objects: list[Any], check: str, place: str
) -> None:
    # Who forwards to it, asks in vain, and is not asked.
    cluster(**pods.answers(**{"services,endpointslices": listing(*objects), "to-the-service": (0, "", "asked")}))
    assert main(["status", "--format", "json"]) == 1
    reason, checks = wrong(capsys)
    assert reason.endswith(f"(a dry run): {check}: {place}")
    assert checks == [check]
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert " risk: no API server reaches the webhook, so no write is reviewed: " in " ".join(out.split())
    assert " fix: " in out


@pytest.mark.parametrize(
    ("served", "problem"),
    [
        pytest.param({"by": create_authority(dt.datetime.now(dt.UTC))}, "issuer certificate", id="of another CA"),
        pytest.param({"name": "other.svc"}, "Hostname mismatch", id="of another name"),
        pytest.param({"age": 91}, "certificate has expired", id="expired"),
    ],
)
def test_a_certificate_that_no_api_server_trusts_is_the_cause(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str], served: dict[str, Any], problem: str
) -> None:
    with pods.serving(**served):
        cluster(**pods.answers())
        assert main(["status", "--format", "json"]) == 1
    reason, checks = wrong(capsys)
    assert ": certificate-untrusted: what Service lease-webhook/lease-webhook serves: " in reason
    assert problem in reason
    assert checks == ["certificate-untrusted"]


def test_a_ca_bundle_that_is_over_is_the_cause_and_nobody_is_asked(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    old = create_authority(pods.now - dt.timedelta(days=CA_DAYS + 1))
    pods.configuration["webhooks"][0]["clientConfig"]["caBundle"] = bundle(old)
    cluster(**pods.answers(**{"to-the-service": (0, "", "asked")}))
    assert main(["status", "--format", "json"]) == 1
    reason, checks = wrong(capsys)
    assert ": ca-bundle-expired: webhooks[0].clientConfig.caBundle, until " in reason
    assert checks == ["ca-bundle-expired"]


def test_a_server_that_does_not_listen_is_the_cause(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    with pods.serving():
        pass  # and is gone
    error = "E1125 portforward.go] dial tcp4 127.0.0.1:8443: connect: connection refused\nerror: lost connection to pod"
    cluster(**pods.answers(**{"to-the-service": (1, f"Forwarding from 127.0.0.1:{pods.port} -> 8443\n", error)}))
    assert main(["status", "--format", "json"]) == 1
    reason, checks = wrong(capsys)
    assert ": target-port-closed: Service lease-webhook/lease-webhook, port 443: nothing listens there" in reason
    assert checks == ["target-port-closed"]


def test_where_all_is_well_and_no_write_is_reviewed_the_cause_is_not_known(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    with pods.serving():
        cluster(**pods.answers())
        assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(STORES[:40])
    assert "why is not known" in out
    assert "lease-webhook/lease-webhook serves a certificate that the caBundle vouches for" in " ".join(out.split())
    assert "!" not in out


def test_what_may_not_be_read_of_the_service_is_no_cause(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden = (1, "", "Error: endpointslices is forbidden")
    cluster(**pods.answers(**{"services,endpointslices": forbidden, "to-the-service": (1, "", "Error: no forwarding")}))
    assert main(["status"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "why is not known" in out
    assert "not known services, endpointslices: Error: endpointslices is forbidden" in out
    assert "which certificate Service lease-webhook/lease-webhook serves: Error: no forwarding" in out


@pytest.mark.parametrize(
    ("policy", "code", "begin"),
    [
        pytest.param(
            "preset: standard\nmode: 'off'",
            1,
            f"{STORES}the policy has mode off, so every write is allowed",
            id="the kill switch",
        ),
        pytest.param(
            "preset: standard\nrules:\n  time-unreadable: {mode: 'off'}",
            2,
            "not known: the policy has time-unreadable in mode off, so whether writes are reviewed cannot be tried",
            id="the rule is off",
        ),
    ],
)
def test_a_policy_that_lets_the_dry_run_pass_is_named(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str], policy: str, code: int, begin: str
) -> None:
    text = f"apiVersion: lease-webhook/v1\n{policy}\n"
    map_ = named("ConfigMap", "lease-webhook-policy", data={"policy.yaml": text})
    installed = [one for one in deployed()[1:] if one["kind"] != "ConfigMap"]
    with pods.serving():
        cluster(**pods.answers(**{"deployments,statefulsets,pods,configmaps": listing(*installed, map_)}))
        assert main(["status"]) == code
    assert " ".join(capsys.readouterr().out.split()).startswith(begin)


def test_a_call_that_failed_closed_is_shown_with_the_message_of_the_api_server(
    pods: Pods, cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        'Error: failed calling webhook "strict.lease-webhook.svc": dial tcp 10.0.0.1:8443: connect: connection refused'
    )
    cluster(**pods.answers(create=(1, "", text), **{"services,endpointslices": listing(service(), endpoints(False))}))
    assert main(["status", "--format", "json"]) == 1
    reason, checks = wrong(capsys)
    assert reason == text
    assert checks == ["no-ready-endpoint"]


def test_an_exempt_user_is_warned_that_policies_do_not_bind_them(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(auth=who("admin", "system:masters", "system:authenticated"))
    assert main(["status", "-n", "shop"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert " you admin is in system:masters, which every policy exempts: " in out
    assert "kubectl --as system:serviceaccount:shop:default" in out
    cluster(auth=(1, "", "error: unknown command"))
    assert main(["status"]) == 0
    assert "system:masters" not in capsys.readouterr().out


def test_a_namespace_out_of_scope_is_reported_as_not_in_force(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(create=(0, "created", ""))
    assert main(["status", "-n", "kube-system"]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("not in force: namespace kube-system is out of scope: leases.lease-webhook.svc selects ")
    assert "kubernetes.io/metadata.name notin (" in line


def test_what_may_not_be_read_is_not_known(cluster: Install, capsys: pytest.CaptureFixture[str]) -> None:
    cluster(
        create=(1, "", "Error: leases is forbidden"),
        namespaces=(1, "", "Error: namespaces is forbidden"),
        port_forward=(1, "", "error: pods is forbidden"),
    )
    assert main(["status"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("not known: Error: leases is forbidden\n")
    assert "not known      namespaces: Error: namespaces is forbidden\n" in out
    assert "lease-webhook-1: not known: error: pods is forbidden\n" in out


def test_policies_that_may_not_be_read_are_not_called_missing(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    stamped = named("Namespace", "shop")
    stamped["metadata"]["labels"] = {"lease-webhook/stamp": "required"}
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    cluster(**{"namespaces": listing(stamped), kinds: (1, "", "Error: Forbidden")})
    assert main(["status"]) == 0
    assert "stamps" not in capsys.readouterr().out
    cluster(namespaces=listing(stamped))
    assert main(["status", "--format", "json"]) == 1
    text = "shop: not in force: lease-webhook-stamp, lease-webhook-stamp-bounds, lease-webhook-stamp-guard"
    assert {"subject": "stamps", "text": text, "isWrong": True, **NO_CHECK} in json.loads(capsys.readouterr().out)[
        "facts"
    ]


def test_without_an_api_server_nothing_is_wrong_and_nothing_is_known(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = (1, "", "E1123 15:17:10 memcache.go] refused\nThe connection to the server 127.0.0.1:6443 was refused")
    names = json.loads(cluster().read_text())
    cluster(**dict.fromkeys(names, refused))
    assert main(["status"]) == 2
    out = capsys.readouterr().out
    assert out == (
        "not known: no API server was reached: 127.0.0.1:6443 refuses connections; choose a cluster with --context or "
        "--kubeconfig\n"
    )


def test_it_waits_until_it_is_in_force(
    cluster: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(create=(0, "created", ""))
    monkeypatch.setattr("time.sleep", lambda _seconds: cluster())
    assert main(["status", "--wait", "60"]) == 0
    assert capsys.readouterr().out.count("in force") == 1


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param(
            {"create": (0, "created", "")}, "waiting; not in force: the API server would store", id="no review"
        ),
        pytest.param(
            {"deployments,statefulsets,pods,configmaps": listing(*deployed(ready=1)[1:])},
            "waiting; in force, but pods: 1 of 2 ready",
            id="something is wrong",
        ),
    ],
)
def test_while_it_waits_it_says_once_for_what(
    answers: dict[str, tuple[int, str, str]],
    message: str,
    cluster: Install,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster(**answers)
    looks = iter([answers, {}])
    # Whoever waits for kubectl sleeps, too, but for less.
    monkeypatch.setattr("time.sleep", lambda seconds: cluster(**next(looks)) if seconds >= 1 else None)
    assert main(["status", "--wait", "60"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(message)


def test_without_kubectl_nothing_is_known(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["status"]) == 2
    assert (
        capsys.readouterr().err
        == "lease-webhook: kubectl cannot be run (No such file or directory); install kubectl, or put it in PATH\n"
    )
