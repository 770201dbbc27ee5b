"""`make pex`: the commands as one executable file, for laptops with Python and without pip: dist/lease-webhook.pex.

It holds the wheels of the lock file for every supported Python on each of krew's platforms; PEX unpacks those that fit
into ~/.cache/pex when it first runs. Tried with every supported Python that is on the path.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from packaging.tags import compatible_tags, cpython_tags

from tools.release.krew import PLATFORMS, list_locked
from tools.release.package import DIST, LEASES, list_supported
from tools.release.reproducible import read_moment

FILE: Final = DIST / "lease-webhook.pex"
COMMANDS: Final = (["--version"], ["why", "--input", LEASES], ["timeline", "--example", "--output", "page.html"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the file beside the wheel, which must be there, and try it. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.pex", description=__doc__)
    parser.add_argument("--build-only", action="store_true", help="try nothing")
    options = parser.parse_args(arguments)
    wheels = [*DIST.glob("*.whl")]
    if len(wheels) != 1:
        print("dist/ must hold one wheel: make package", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "wheels").mkdir()
        shutil.copy(wheels[0], directory / "wheels")
        for download in list_downloads(directory):
            subprocess.run([sys.executable, "-m", "pip", "download", *download], check=True)
        command = [sys.executable, "-m", "pex", "lease-webhook", f"--pre-resolved-dists={directory}/wheels"]
        command += [f"--complete-platform={json.dumps(target)}" for target in list_targets()]
        command += ["--console-script=lease-webhook", "--venv", "--sh-boot", "--disable-cache"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(read_moment())}
        subprocess.run([*command, f"--output-file={FILE}"], check=True, env=environment)
        print(f"dist/{FILE.name}: {FILE.stat().st_size / 1e6:.1f} MB")
        if options.build_only:
            return 0
        # A shim of pyenv is on the path for a Python that is not chosen.
        tried = [name for name in list_supported() if shutil.which(name) and can_run(name)]
        failures = [failure for name in tried for failure in find_problems(name, directory)]
    print(f"tried with {', '.join(tried) or 'nothing'}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures or not tried else 0


def list_downloads(directory: Path) -> Iterator[list[str]]:
    """Yield the arguments of pip, once for each Python and platform: only wheels, by the hashes of the lock file."""
    requirements = directory / "requirements.txt"
    requirements.write_text(list_locked())
    for python in list_supported():
        for names in PLATFORMS.values():
            machine = [f"--python-version={python.removeprefix('python')}", *(f"--platform={name}" for name in names)]
            options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:"]
            yield [*options, *machine, f"--dest={directory}/wheels", f"--requirement={requirements}"]


def list_targets() -> Iterator[dict[str, object]]:
    """Yield the data of each Python and platform for PEX: markers of requirements, and tags of wheels that fit."""
    for python in list_supported():
        version = python.removeprefix("python")
        numbers = [int(number) for number in version.split(".")]
        for machine, platforms in PLATFORMS.items():
            system, _, kind = machine.partition("-")
            markers = {
                "implementation_name": "cpython",
                "implementation_version": f"{version}.0",
                "os_name": "posix",
                "platform_machine": {"amd64": "x86_64", "arm64": "arm64" if system == "darwin" else "aarch64"}[kind],
                "platform_python_implementation": "CPython",
                "platform_release": "",
                "platform_system": system.capitalize(),
                "platform_version": "",
                "python_full_version": f"{version}.0",
                "python_version": version,
                "sys_platform": system,
            }
            interpreter = f"cp{version.replace('.', '')}"
            tags = [*cpython_tags(numbers, platforms=platforms), *compatible_tags(numbers, interpreter, platforms)]
            yield {"marker_environment": markers, "compatible_tags": [*map(str, tags)]}


def can_run(python: str) -> bool:
    """Return whether there is an interpreter behind a name."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def find_problems(python: str, directory: Path) -> Iterator[str]:
    """Yield the problems with this interpreter, in a cache of its own."""
    environment = {**os.environ, "PEX_ROOT": str(directory / f"cache-{python}")}
    environment.pop("PYTHONPATH", None)
    for arguments in COMMANDS:
        words = [python, str(FILE), *arguments]  # not as a shell script that looks for a Python
        done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{python} {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}"


if __name__ == "__main__":
    sys.exit(main())
