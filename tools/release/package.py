"""`make package`: build the wheel and the source distribution, install the wheel, and use it as a person would.

Tried with every supported Python that is on the path: the commands with their declared dependencies alone, then the
server with its lock; with pipx, and with uvx and `uv run` of a checkout. Programs that are not installed here are
named, not passed over.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.release import bill
from tools.release.reproducible import normalize, read_moment
from tools.release.urls import add_urls

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
SERVER_ONLY = ("flask", "gunicorn", "httptools", "prometheus_client", "uvloop")
LEASES: Final = str(ROOT / "tests" / "data" / "leases" / "seeded.json")
FINDS: Final = ("check", "audit")
"""Commands that exit with 1 if they find something, which is an answer."""
COMMANDS = (
    ["--version"],
    ["--help"],
    ["serve", "--help"],
    ["completion", "bash"],
    ["rules"],
    ["policy", "show", "strict"],
    ["policy", "schema"],
    ["certs", "certs"],
    ["install", "--certificate=self-signed", "--image=registry.example/lease-webhook:1"],
    ["install", "--certificate=openshift", "--component=monitoring", "--image=registry.example/lease-webhook:1"],
    ["install", "--policies-only"],
    ["status", "--help"],
    ["export", "fence", str(ROOT / "tests" / "data" / "fence" / "policy.yaml")],
    ["check", str(ROOT / "deploy" / "proof.yaml")],
    ["why", "--input", LEASES],
    ["audit", "--input", LEASES],
    ["timeline", "--input", LEASES, "-o", "page.html"],
    ["timeline", "--example", "--format", "json"],
)
RUNNERS: Final = {
    "pipx": ("run", "--spec", "{wheel}"),
    "uvx": ("--from", "{tree}"),
    "uv": ("run", "--project", "{tree}"),
}
"""Programs that make an environment, of the wheel or of a checkout, and run a command in it."""
PIP: Final = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
Done = subprocess.CompletedProcess[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and try. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.package", description=__doc__)
    parser.add_argument("--url", help="the repository, for the metadata and the links of README")
    parser.add_argument("--build-only", action="store_true", help="try nothing")
    options = parser.parse_args(arguments)
    shutil.rmtree(DIST, ignore_errors=True)
    tried: list[str] = []
    not_tried: list[str] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        # From a copy: setuptools leaves its own directories beside what it builds.
        tree = directory / "tree"
        subprocess.run(["git", "-C", str(ROOT), "checkout-index", "--all", f"--prefix={tree}/"], check=True)
        if options.url:
            add_urls(tree, options.url, read_project()["version"])
        build = [sys.executable, "-m", "build", "--no-isolation", f"--outdir={DIST}", str(tree)]
        at = read_moment()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(at)}
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL, env=environment)
        for source in DIST.glob("*.tar.gz"):
            normalize(source, at)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir()], check=True)
        (source,) = DIST.glob("*.tar.gz")
        failures += [f"{source.name} has no {name}" for name in find_missing(source)]
        if options.build_only:
            return _report(failures)
        (wheel,) = DIST.glob("*.whl")
        for name in list_supported():
            work = directory / name
            work.mkdir()
            python = find_interpreter(name)
            (tried if python else not_tried).append(name)
            if python:
                failures += [f"{name}: {failure}" for failure in _check_python(python, wheel, work)]
        for name, how in RUNNERS.items():
            program = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
            (tried if program else not_tried).append(name)
            if program:
                arguments = [word.format(wheel=wheel, tree=tree) for word in how]
                failures += _check_runner([program, *arguments], directory)
    print(f"tried with {', '.join(tried)}; not installed here, so not tried: {', '.join(not_tried) or 'none'}")
    if not any(name.startswith("python") for name in tried):
        failures.append("no supported Python is installed here")
    return _report(failures)


def _report(failures: Sequence[str]) -> int:
    """Print the problems, and return the exit status."""
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def find_missing(source: Path) -> list[str]:
    """Return the missing files of a source distribution: links of README, sources of the image, inputs of overlays."""
    with tarfile.open(source) as archive:
        # Below one folder, which is named after the version.
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = set(re.findall(r"\]\(((?!https?:)[^)#\s]+)", (ROOT / "README.md").read_text()))
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    needed.update(name for names in copied for name in names.split())
    needed.add("certs/kustomization.yaml")
    return sorted(needed - names)


def _check_runner(command: list[str], directory: Path) -> Iterator[str]:
    """Yield the problems of a run in an environment that lasts as long."""
    caches = {"PIPX_HOME": f"{directory}/pipx", "UV_CACHE_DIR": f"{directory}/uv", "UV_PYTHON_DOWNLOADS": "never"}
    done = _run([*command, "lease-webhook", "--version"], directory, caches)
    if done.returncode or not done.stdout.startswith("lease-webhook "):
        yield f"{Path(command[0]).name}: exit {done.returncode}: {done.stderr.strip()}"


def read_project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["project"]
    return table


def list_supported() -> list[str]:
    """Return the names of the interpreters that the classifiers promise."""
    languages = [line for line in read_project()["classifiers"] if line.startswith("Programming Language :: Python ::")]
    versions = [line.rpartition(" ")[2] for line in languages]
    return [f"python{version}" for version in versions if "." in version]


def find_interpreter(name: str) -> str:
    """Return the program of a name that works: on the path, or one that pyenv has and did not choose; "" without."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    chosen = sorted(pyenv.glob(f"versions/{name.removeprefix('python')}.*/bin/{name}"))
    works = (
        one for one in (name, *map(str, chosen)) if not _run([one, "-c", "import venv, ensurepip"], ROOT).returncode
    )
    return next(works, "")


def _check_python(python: str, wheel: Path, directory: Path) -> Iterator[str]:
    """Yield the problems in environments of this interpreter."""
    pinned = [line.split()[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line]
    constraints = directory / "constraints.txt"
    constraints.write_text("\n".join(pinned))
    for flavor, wanted in (("commands", str(wheel)), ("server", f"{wheel}[server]")):
        environment = directory / flavor
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        done = _run([str(environment / "bin" / "python"), *PIP, f"--constraint={constraints}", wanted], directory)
        if done.returncode:
            yield f"pip install of the {flavor}: {done.stderr.strip()}"
        elif flavor == "commands":
            yield from _check_commands_alone(environment, directory)
            yield from _check_shared_files(environment)
        else:
            yield from _check_bill(environment, directory)
            yield from _check_server(environment, directory)


def _check_bill(environment: Path, directory: Path) -> Iterator[str]:
    """Yield each package that the bill of materials of the server does not have as it is installed."""
    document = directory / "lease-webhook.cdx.json"
    bill.write(document)
    listed = _run([str(environment / "bin" / "python"), "-m", "pip", "list", "--format=json"], directory)
    yield from bill.find_differences(bill.list_components(document.read_text()), bill.list_installed(listed.stdout))


def _check_commands_alone(environment: Path, directory: Path) -> Iterator[str]:
    for name in SERVER_ONLY:
        if _run([str(environment / "bin" / "python"), "-c", f"import {name}"], directory).returncode == 0:
            yield f"{name} came with the commands"
    for arguments in COMMANDS:
        done = _run_command(environment, arguments, directory)
        if done.returncode not in ({0, 1} if arguments[0] in FINDS else {0}) or "this is a bug" in done.stderr:
            yield f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}"
    refused = _run_command(environment, ["serve"], directory)
    if refused.returncode != 2 or "[server]" not in refused.stderr:
        yield f"serve without the server: exit {refused.returncode}: {refused.stderr.strip()}"


def _check_shared_files(environment: Path) -> Iterator[str]:
    folder = ROOT / "deploy"
    for path in sorted((folder / "share").rglob("*")):
        installed = environment / path.relative_to(folder)
        if path.is_file() and (not installed.is_file() or installed.read_bytes() != path.read_bytes()):
            yield f"{path.relative_to(folder)} is not installed"


def _check_server(environment: Path, directory: Path) -> Iterator[str]:
    """Yield the problems of a server that starts and is asked to end."""
    arguments = [
        "serve",
        "--bind=127.0.0.1:0",
        "--health-bind=127.0.0.1:0",
        "--workers=1",
        f"--tls-dir={directory}/certs",
    ]
    command = [str(environment / "bin" / "lease-webhook"), *arguments]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        lines: list[str] = []
        for line in server.stdout:
            lines.append(line)
            if "serving a certificate" in line:
                server.terminate()
        if server.wait() != 0 or not any("serving a certificate" in line for line in lines):
            yield f"serve: exit {server.returncode}: {''.join(lines).strip()}"


def _run_command(environment: Path, arguments: list[str], directory: Path) -> Done:
    return _run([str(environment / "bin" / "lease-webhook"), *arguments], directory)


def _run(command: list[str], directory: Path, variables: Mapping[str, str] | None = None) -> Done:
    every = {**os.environ, **(variables or {})}
    try:
        return subprocess.run(command, cwd=directory, env=every, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        return Done(command, 127, "", str(missing))


if __name__ == "__main__":
    sys.exit(main())
