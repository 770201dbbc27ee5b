"""The steal of deploy/try with a kubectl that answers as told; `make cluster` runs all of it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.deploy.sources import DEPLOY

DENIED = "echo 'Error from server (Forbidden): admission webhook \"x\" denied the request: held' >&2 && exit 1"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        pytest.param(DENIED, 0, "Refused, as it should be", id="the webhook denies it"),
        pytest.param("echo patched", 1, "the steal was not refused", id="it is stored"),
        pytest.param("echo 'Unable to connect' >&2 && exit 1", 1, "another reason", id="no API server answers"),
    ],
)
def test_only_a_denial_refuses_the_steal(answer: str, code: int, message: str, tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\ncase "$*" in *intruder*) {answer} ;; esac\n')
    kubectl.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TRY_DIRECTORY": str(tmp_path / "work")}
    done = subprocess.run(
        ["bash", str(DEPLOY / "try"), "image:1", "steal"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, message in done.stdout + done.stderr) == (code, True)
