"""`make sbom`: the bill of materials of the server (CycloneDX 1.6), from its lock file.

`make package` compares it with the packages in an environment of each Python that has the wheel and its server.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from tools.release.reproducible import ROOT

FILE: Final = ROOT / "dist" / "lease-webhook.cdx.json"
LOCK: Final = ROOT / "requirements.txt"
NOT_OURS: Final = frozenset({"pip", "setuptools", "wheel", "lease-webhook"})
"""Packages of an environment on which the server does not run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.bill", description=__doc__)
    parser.add_argument("--output", type=Path, default=FILE)
    write(parser.parse_args(arguments).output)
    return 0


def write(file: Path) -> None:
    """Write the bill of the packages in the lock file. Raises CalledProcessError."""
    program = Path(sys.executable).parent / "cyclonedx-py"
    flags = [f"--pyproject={ROOT / 'pyproject.toml'}", "--output-reproducible", "--of=JSON", f"--output-file={file}"]
    subprocess.run([str(program), "requirements", *flags, str(LOCK)], check=True)


def list_components(document: str) -> dict[str, str]:
    """Return the versions of the components of a CycloneDX document, by the names that an index knows."""
    return {canonicalize_name(one["name"]): one["version"] for one in json.loads(document)["components"]}


def list_installed(pip_list: str) -> dict[str, str]:
    """Return the versions of packages in the output of `pip list --format=json`, without those that are NOT_OURS."""
    found = {canonicalize_name(one["name"]): str(one["version"]) for one in json.loads(pip_list)}
    return {name: version for name, version in found.items() if name not in NOT_OURS}


def find_differences(bill: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """Yield each package whose version is not the same in a bill and in an environment, or that only one has."""
    for name in sorted(bill.keys() | found.keys()):
        if bill.get(name) != found.get(name):
            yield f"{name}: {bill.get(name, 'not')} in the bill of materials, {found.get(name, 'not')} installed"


if __name__ == "__main__":
    sys.exit(main())
