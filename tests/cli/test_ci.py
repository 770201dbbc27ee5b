"""What runs in CI: the commands of docs/check-in-ci.md, the hooks of pre-commit and the steps of the action."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent
PAGE: Final = ROOT / "docs" / "check-in-ci.md"
ENVIRONMENT: Final = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
LIVE: Final = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: checkout, namespace: shop}
spec:
  holderIdentity: checkout-0
  leaseDurationSeconds: 15
  leaseTransitions: 1
  renewTime: "2026-01-31T12:00:00.000000Z"
"""
NEGATIVE: Final = LIVE.replace("Seconds: 15", "Seconds: -15")


def run(command: list[str], folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# ---- pre-commit -----------------------------------------------------------------------------------------------------


def hooks() -> list[dict[str, Any]]:
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return hooks


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that uses our hooks, with the program that is installed here in place of a new environment."""
    folder = tmp_path / "repository"
    folder.mkdir()
    run(["git", "init", "--quiet"], folder)
    local = [{**hook, "language": "system"} for hook in hooks()]
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}))
    (folder / "live.yaml").write_text(LIVE)
    (folder / "values.yaml").write_text("replicas: 3\n")
    (folder / "template.yaml").write_text("kind: {{ .Values.kind }}\n")
    (folder / "lease-webhook-policy.yaml").write_text("apiVersion: lease-webhook/v1\npreset: strict\n")
    return folder


def commit(repository: Path) -> "subprocess.CompletedProcess[str]":
    run(["git", "add", "--all"], repository)
    home = repository.parent / "home"
    return run(["pre-commit", "run", "--color=never"], repository, PRE_COMMIT_HOME=str(home), HOME=str(home))


def test_the_definitions_are_those_that_pre_commit_accepts() -> None:
    done = run(["pre-commit", "validate-manifest", ".pre-commit-hooks.yaml"], ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_good_commit_passes_all_hooks(repository: Path) -> None:
    done = commit(repository)
    results = [line.rpartition(".")[2] for line in done.stdout.splitlines()]
    assert (done.returncode, results) == (0, ["Passed"] * len(hooks())), done.stdout


def test_a_bad_commit_fails_the_hooks_that_find_it(repository: Path) -> None:
    (repository / "new.yaml").write_text(NEGATIVE)
    (repository / "lease-webhook-policy.yaml").write_text("apiVersion: lease-webhook/v1\npreset: strct\n")
    done = commit(repository)
    assert done.returncode == 1
    _, check, policy = done.stdout.split("- hook id: ")
    assert "lease-duration: spec.leaseDurationSeconds" in check
    assert 'did you mean "strict"?' in policy


# ---- the action -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def action_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The action as a runner checks it out; building in place must not write into this repository."""
    folder = tmp_path_factory.mktemp("action") / "lease-webhook"
    shutil.copytree(ROOT / "webhook", folder / "webhook", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("action.yml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def steps(action: dict[str, Any], **inputs: str) -> list[tuple[str, dict[str, str]]]:
    """(script, environment) of each step, with the inputs in their places, `_` in a name for a dash."""
    given = {name: entry["default"] for name, entry in action["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    values = {f"${{{{ inputs.{name} }}}}": value for name, value in given.items()}
    return [
        (step["run"], {name: values[value] for name, value in step.get("env", {}).items()})
        for step in action["runs"]["steps"]
    ]


def packages_of_this_environment(runner: Path) -> None:
    """Let the runner's environment see the packages that are installed here, so that it needs no network."""
    here = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    borrowed = runner / "packages"
    borrowed.mkdir()
    for package in here.iterdir():
        if not package.name.startswith(("lease_webhook", "__editable__", "pip", "_pytest")):
            (borrowed / package.name).symlink_to(package)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = runner / "lease-webhook" / "lib" / version / "site-packages"
    folder.mkdir(parents=True)
    (folder / "borrowed.pth").write_text(f"{borrowed}\n")


HOSTILE: Final = f"{LIVE}  strategy: {'y' * 90} ::add-mask::e ##[error]\n"
"""A lease that is denied with a text that is wrapped so that what a runner takes for a command begins a line."""
_COMMAND: Final = re.compile(r"\s*(?:::|##\[)([^\s:\]]+)(?: .*?)?(?:::|\])(.*)")


def commands_read(output: str) -> list[str]:
    """The workflow commands that a runner executes: it trims a line, and stops and resumes by a token."""
    executed, token = [], ""
    for match in filter(None, map(_COMMAND.match, output.splitlines())):
        if token:
            token = "" if match[1] == token else token
        elif match[1] == "stop-commands":
            token = match[2]
        else:
            executed.append(match[1])
    assert not token, "commands stay stopped"
    return executed


@pytest.mark.slow
def test_the_steps_of_the_action(action_folder: Path, tmp_path: Path) -> None:
    action = yaml.safe_load((action_folder / "action.yml").read_text())
    packages_of_this_environment(tmp_path)
    runner = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(action_folder),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "lease.yaml").write_text(NEGATIVE)
    (workspace / "good.yaml").write_text(LIVE)
    for module in ("venv", "secrets"):
        (workspace / f"{module}.py").write_text("open('pwned', 'w')")
    (install, no_environment), (check, environment) = steps(action)
    # --noprofile --norc -e -o pipefail is what a runner adds: docs.github.com, workflow syntax, `shell`.
    bash = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c"]
    installed = run([*bash, install], workspace, **runner)
    assert (installed.returncode, no_environment) == (0, {}), installed.stderr
    denied = run([*bash, check], workspace, **runner, **environment)
    assert (denied.returncode, "1 denied, 1 allowed" in denied.stdout) == (1, True), denied.stderr
    (workspace / "lease.yaml").write_text(HOSTILE)
    tokens = set()
    for _ in range(2):
        hostile = run([*bash, check], workspace, **runner, **environment)
        assert (hostile.returncode, hostile.stderr) == (1, "")
        tokens.add(hostile.stdout.partition("\n")[0])
        text, token, annotated = hostile.stdout.rpartition(f"::{hostile.stdout[17:81]}::\n")
        assert token
        assert commands_read("\n".join(text.splitlines()[1:])) == ["add-mask"]
        assert commands_read(hostile.stdout) == ["error"]
        assert annotated.startswith("::error file=lease.yaml,line=")
    assert len(tokens) == 2
    _, (check, environment) = steps(action, args="check good.yaml --format json")
    assert run([*bash, check], workspace, **runner, **environment).returncode == 0
    _, (check, environment) = steps(action, args="check $(touch pwned); touch pwned")
    assert run([*bash, check], workspace, **runner, **environment).returncode == 2
    (workspace / "two words").mkdir()
    (workspace / "two words" / "typo.yaml").write_text(f"{LIVE}  renewTim: x\n")
    for fail_on, code in (("deny", 0), ("warn", 1)):
        _, (check, environment) = steps(action, paths="good.yaml\ntwo words\n", fail_on=fail_on, policy="strict")
        done = run([*bash, check], workspace, **runner, **environment)
        assert (done.returncode, done.stdout.count("::warning file=two words/typo.yaml,line=9,")) == (code, 1)
    _, (check, environment) = steps(action, paths="--policy=strict\n$(touch pwned)")
    assert run([*bash, check], workspace, **runner, **environment).returncode == 2
    assert not (workspace / "pwned").exists()


def test_the_commands_of_the_page_stop_workflow_commands_as_the_action_does(tmp_path: Path) -> None:
    blocks = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (script,) = (one["run"] for block in blocks if isinstance(block, list) for one in block if "run" in one)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "lease.yaml").write_text(HOSTILE)
    done = run(["bash", "-e", "-c", script], tmp_path)
    assert (done.returncode, commands_read(done.stdout), done.stderr) == (1, [], "")
    assert "::add-mask::e" in done.stdout


def test_no_step_puts_an_input_into_its_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert not [script for script, _ in steps(action) if "${{" in script]
