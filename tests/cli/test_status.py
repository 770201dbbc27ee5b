"""`lease-webhook status` with a kubectl that answers from files, and pods that expose metrics."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.test_in_force import deployed, metrics, named
from tests.json_contract import problems
from webhook.cli.main import main

KUBECTL = """\
#!{python}
import json, sys
answers = json.load(open({answers!r}))
code, out, err = answers.get(sys.argv[2] if sys.argv[1] == "get" else sys.argv[1], (1, "", "Error: Forbidden"))
if sys.argv[1] == "create":
    assert json.load(sys.stdin)["metadata"]["name"] == "lease-webhook-proof"
sys.stdout.write(out)
sys.stdout.flush()
sys.stderr.write(err)
sys.exit(code)
"""
REFUSED = (1, "", "The Lease is invalid: ... (lease webhook, rule time-unreadable)\n")
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
    assert {"subject": "pods", "text": "2 of 2 ready", "isWrong": False} in printed["facts"]


def test_a_lease_that_would_be_stored_is_not_in_force(cluster: Install, capsys: pytest.CaptureFixture[str]) -> None:
    cluster(create=(0, "created", ""))
    assert main(["status"]) == 1
    assert capsys.readouterr().out.startswith("not in force: ")


def test_a_namespace_that_is_out_of_scope_is_said_to_be_so(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(create=(0, "created", ""))
    assert main(["status", "-n", "kube-system"]) == 1
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("not in force: namespace kube-system is out of scope: leases.lease-webhook.svc selects ")
    assert "kubernetes.io/metadata.name notin (" in said


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
    assert {"subject": "stamps", "text": text, "isWrong": True} in json.loads(capsys.readouterr().out)["facts"]


def test_without_an_api_server_nothing_is_wrong_and_nothing_is_known(
    cluster: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = (1, "", "E1123 15:17:10 memcache.go] refused\nThe connection to the server 127.0.0.1:6443 was refused")
    names = json.loads(cluster().read_text())
    cluster(**dict.fromkeys(names, refused))
    assert main(["status"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("not known: The connection to the server 127.0.0.1:6443 was refused\n")
    assert out.count("The connection") == 2
    assert "not-registered" not in out
    assert "memcache" not in out


def test_it_waits_until_it_is_in_force(
    cluster: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(create=(0, "created", ""))
    monkeypatch.setattr("time.sleep", lambda _seconds: cluster())
    assert main(["status", "--wait", "60"]) == 0
    assert capsys.readouterr().out.count("in force") == 1


def test_without_kubectl_nothing_is_known(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["status"]) == 2
    assert "kubectl cannot be run" in capsys.readouterr().err
