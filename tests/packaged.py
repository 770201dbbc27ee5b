"""`make package`: build the wheel and the source distribution, install the wheel alone, and use it as a person would.

The commands must work with what they declare, and nothing of the server may be needed for them.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SERVER_ONLY = ("flask", "gunicorn", "httptools", "prometheus_client", "uvloop")
COMMANDS = (
    ["--version"],
    ["--help"],
    ["serve", "--help"],
    ["rules"],
    ["policy", "show", "strict"],
    ["policy", "schema"],
    ["certs", "certs"],
    ["install", "--certificate=self-signed"],
    ["install", "--certificate=openshift", "--component=monitoring"],
    ["export", "fence", "--lease=a/b", "--writer=a/b", "--resource=configmaps"],
    ["check", str(ROOT / "deploy" / "proof.yaml")],
    ["why", "--input", str(ROOT / "tests" / "data" / "leases" / "seeded.json")],
    ["audit", str(ROOT / "tests" / "data" / "leases" / "seeded.json")],
)


def main() -> int:
    """Build and try. Returns the exit status."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        # From a copy: setuptools leaves its own directories beside what it builds.
        tree = Path(temporary) / "tree"
        subprocess.run(["git", "-C", str(ROOT), "checkout-index", "--all", f"--prefix={tree}/"], check=True)
        subprocess.run([sys.executable, "-m", "build", "--no-isolation", f"--outdir={DIST}", str(tree)], check=True)
        (wheel,) = DIST.glob("*.whl")
        failures = _tried(wheel, Path(temporary))
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _tried(wheel: Path, directory: Path) -> list[str]:
    """What does not work in an environment that holds the wheel and what it declares."""
    environment = directory / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pinned = [line.split()[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line]
    constraints = directory / "constraints.txt"
    constraints.write_text("\n".join(pinned))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"--constraint={constraints}", str(wheel)], check=True)
    imported = {name: _run([str(python), "-c", f"import {name}"], directory) for name in SERVER_ONLY}
    failures = [f"{name} came with the commands" for name, done in imported.items() if done.returncode == 0]
    for arguments in COMMANDS:
        done = _command(environment, arguments, directory)
        # A check that denies is an answer.
        if done.returncode not in ({0, 1} if arguments[0] == "check" else {0}) or done.stderr.strip().count("bug"):
            failures.append(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
    refused = _command(environment, ["serve"], directory)
    if refused.returncode != 2 or "lease-webhook[server]" not in refused.stderr:
        failures.append(f"serve without the server: {refused.returncode}: {refused.stderr}")
    return failures


def _command(environment: Path, arguments: list[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    return _run([str(environment / "bin" / "lease-webhook"), *arguments], directory)


def _run(command: list[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
