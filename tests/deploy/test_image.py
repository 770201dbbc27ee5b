"""The Dockerfile, read as text: no engine is needed to see what it promises."""

import re

from tests.deploy.sources import DEPLOY, container, pod

LINES = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
STAGES = [index for index, line in enumerate(LINES) if line.startswith("FROM ")]
LAST = LINES[STAGES[-1] :]


def words(instruction: str) -> list[str]:
    (line,) = [line for line in LAST if line.startswith(f"{instruction} ")]
    return line.split()[1:]


def test_both_bases_are_arguments() -> None:
    arguments = {line.split()[1].partition("=")[0] for line in LINES if line.startswith("ARG ")}
    used = {re.sub(r"[${}]", "", LINES[index].split()[1]) for index in STAGES}
    assert used == {"BUILD_BASE", "RUNTIME_BASE"}
    assert arguments - used == {"REVISION"}, "which the label carries"


def test_nothing_runs_in_the_last_stage_which_is_built_from_nothing() -> None:
    assert "ARG RUNTIME_BASE=scratch" in LINES
    assert not [line for line in LAST if line.startswith("RUN ")]


def test_the_user_is_the_one_of_the_deployment() -> None:
    security = pod()["securityContext"]
    assert words("USER") == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    assert f"USER = {security['runAsUser']}\n" in (DEPLOY / "image" / "assemble.py").read_text()


def test_the_ports_are_those_of_the_deployment() -> None:
    assert words("EXPOSE") == [str(port["containerPort"]) for port in container()["ports"]]


def test_every_package_is_pinned_by_hash() -> None:
    installs = [line for line in LINES if "pip install" in line]
    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs if not line.endswith(" ."))
    assert "--no-deps --no-build-isolation" in installs[-1]
    locked = (DEPLOY.parent / "requirements-test.txt").read_text()
    # What the sed of the build stage cuts out: the build backend with its hashes.
    (backend,) = re.findall(r"^setuptools==\S+ \\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", locked, re.MULTILINE)
    assert "--hash=sha256:" in backend


def test_the_builder_gets_what_is_copied_and_no_key() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source for line in LINES if line.startswith("COPY ") and "--from" not in line for source in line.split()[1:-1]
    }
    assert allowed == copied
    assert not [path for path in allowed if path.startswith("certs")]
