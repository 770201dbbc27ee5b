"""What a process of the server holds: readiness, a policy that changes, and the thread that keeps both up."""

import gc
import json
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest
from flask import Flask

from tests.server.harness import ROOT
from tests.server.test_app import JSON, STEAL
from webhook.admission.policy.file import PolicyFile
from webhook.server.app import make_review_app
from webhook.server.hooks import Readiness
from webhook.server.service import Service
from webhook.server.settings import Options

pytestmark = pytest.mark.usefixtures("the_log_as_it_was")


def test_readiness_is_that_of_the_server_and_of_the_policy(tmp_path: Any) -> None:
    class Broken:
        def find_readiness(self) -> Readiness:
            return Readiness(["certificate: expired"], ["certificate: another warning"])

    file = tmp_path / "policy.yaml"
    file.write_text('apiVersion: lease-webhook/v1\nmode: "off"\n')
    service = Service(Options(), PolicyFile(str(file)))
    app = make_review_app(service)
    assert isinstance(app.server_hooks.health, Flask)
    health = app.server_hooks.health.test_client()
    warning = "warning: policy: mode is off, every write is allowed; remove it to evaluate writes again\n"
    assert (health.get("/readyz").status_code, health.get("/readyz").text) == (200, f"ok\n{warning}")
    app.server_hooks.start(Broken())
    ready = health.get("/readyz")
    assert (ready.status_code, ready.text) == (
        503,
        f"certificate: expired\n{warning}warning: certificate: another warning\n",
    )
    assert health.get("/livez").status_code == 200


def test_a_changed_policy_is_used(tmp_path: Any) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: lease-webhook/v1\npreset: observe\n")
    service = Service(Options(policy_poll_seconds=0.01), PolicyFile(str(file)))
    client = make_review_app(service).test_client()
    assert b'"allowed":true' in client.post("/validate", data=STEAL, content_type=JSON).data
    file.write_text("apiVersion: lease-webhook/v1\npreset: strict\n")
    due = service.run_upkeep(0.0, 0.0)
    service.run_upkeep(due, due)
    assert b'"allowed":false' in client.post("/validate", data=STEAL, content_type=JSON).data
    file.write_text("nonsense")
    for _ in range(2):
        due = service.run_upkeep(due, due)
    reasons, warnings = service.find_readiness()
    assert not reasons
    assert len(warnings) == 1
    assert warnings[0].startswith("policy: ")
    assert b'"allowed":false' in client.post("/validate", data=STEAL, content_type=JSON).data


FORKED = """
import os, sys
from tests.server.test_app import BODY, JSON
from webhook.server.app import create_app

app = create_app("standard")
for reviews in (2, 0):
    if os.fork() == 0:
        client = app.test_client()
        for _ in range(reviews):
            assert client.post("/validate", data=BODY, content_type=JSON).status_code == 200
        print(client.get("/readyz").text, end="", flush=True)
        os._exit(0)
    os.wait()
print(app.test_client().get("/readyz").text, end="", flush=True)
"""


def test_a_fork_of_the_process_in_which_the_application_began_answers_and_reports_it_once() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, cwd=ROOT)
    problem = "began before this process was forked: it uses no changed policy file, and its metrics lag; "
    advice = "leave --preload out"
    lines = done.stdout.splitlines()
    (error,) = [json.loads(line) for line in lines if '"error"' in line]
    assert error["message"] == f"the application {problem}{advice}"
    answers = [line for line in lines if not line.startswith("{")]
    warning = f"warning: application: {problem}{advice}"
    assert answers == ["ok", warning, "ok", warning, "ok"]


FORKED_TWICE = """
import os
from tests.server.test_app import BODY, JSON
from webhook.server.app import create_app

app = create_app("standard")
if os.fork() == 0:
    if os.fork() == 0:
        client = app.test_client()
        for _ in range(3):
            assert client.post("/validate", data=BODY, content_type=JSON).status_code == 200
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
"""


def test_a_fork_of_a_fork_reports_it_once_too() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED_TWICE], capture_output=True, text=True, check=True, cwd=ROOT)
    assert len([line for line in done.stdout.splitlines() if '"error"' in line]) == 1


def test_the_upkeep_of_a_service_ends_with_it() -> None:
    service = Service(Options(), PolicyFile("standard"))
    service.start_threads()
    service.start_threads()
    (upkeep,) = [one for one in threading.enumerate() if one.name == "upkeep" and one.is_alive()][-1:]
    gone = weakref.ref(service)
    del service
    gc.collect()
    assert gone() is None
    upkeep.join(5)
    assert not upkeep.is_alive()
