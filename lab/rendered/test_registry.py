"""The packaged chart is pushed to a registry and pulled from it, and is the same."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.e2e.toolchain import build
from tools.rendered import chart
from tools.rendered.chart import CHART, find_helm, run_helm


@pytest.fixture
def registry() -> Iterator[str]:
    program = build(Path(chart.__file__).parent / "go" / "registry", ".", "registry")
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.terminate()


def run(home: Path, *arguments: str) -> str:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = [str(find_helm()), *arguments, "--plain-http"]
    result = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_the_chart_goes_to_a_registry_and_back(registry: str, tmp_path: Path) -> None:
    assert run_helm("package", f"--destination={tmp_path}").returncode == 0
    (packaged,) = tmp_path.glob("lease-webhook-*.tgz")
    pushed = run(tmp_path, "push", str(packaged), f"oci://{registry}/charts")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    assert f"{registry}/charts/lease-webhook:{version}" in pushed
    (tmp_path / "pulled").mkdir()
    run(tmp_path, "pull", f"oci://{registry}/charts/lease-webhook", f"--version={version}", "--destination=pulled")
    (pulled,) = (tmp_path / "pulled").glob("*.tgz")
    assert pulled.read_bytes() == packaged.read_bytes()
