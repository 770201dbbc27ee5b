"""The CustomResourceDefinitions of our neighbors, out of their own Go modules, whose hashes are in go.sum."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from lab.e2e.toolchain import MissingToolchainError, find_cache_directory

MODULE: Final = Path(__file__).parent / "go" / "definitions"
FILES: Final = {
    "github.com/cert-manager/cert-manager": (
        "deploy/crds/cert-manager.io_certificaterequests.yaml",
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_clusterissuers.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
    ),
    "github.com/prometheus-operator/prometheus-operator": tuple(
        f"example/prometheus-operator-crd/monitoring.coreos.com_{plural}.yaml"
        for plural in ("podmonitors", "probes", "prometheuses", "prometheusrules", "servicemonitors")
    ),
}
"""By Go module: the files, each of one definition, that are needed."""
WRITTEN: Final = ("certificates", "issuers", "prometheusrules", "servicemonitors")
"""The custom resources that we write; the others are what their controllers watch."""


def find_definitions(*plurals: str) -> list[Path]:
    """Return the file of each custom resource, by its plural name."""
    directory = _fetch()
    return [one for plural in plurals for one in directory.glob(f"*_{plural}.yaml")]


def _fetch() -> Path:
    """Return a directory with the files of FILES, fetched into the cache once for each version.

    Raises MissingToolchainError without Go, RuntimeError if a module cannot be had or is not the one of go.sum.
    """
    digest = hashlib.sha256(repr(FILES).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    target = find_cache_directory() / "definitions" / digest.hexdigest()[:16]
    if target.exists():
        return target
    if shutil.which("go") is None:
        raise MissingToolchainError(
            "custom resource definitions come from Go modules, and there is no `go` on the PATH"
        )
    print(f"fetching custom resource definitions into {target} (once)", file=sys.stderr, flush=True)
    modules = _download()
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    unfinished.mkdir(parents=True)
    for module, source in modules.items():
        for file in FILES[module]:
            shutil.copyfile(source / file, unfinished / Path(file).name)
    unfinished.rename(target)
    return target


def find_versions() -> dict[str, str]:
    """Return the pinned version of each module."""
    words = [line.split() for line in (MODULE / "go.mod").read_text().splitlines()]
    return {line[0]: line[1] for line in words if line and line[0] in FILES}


def _download() -> dict[str, Path]:
    """Return the directory into which Go has unpacked each module, after it compared the hash with go.sum."""
    pinned = (MODULE / "go.sum").read_text()
    with tempfile.TemporaryDirectory() as copy:
        # A copy, because Go adds to go.sum what it has no hash of; here that is an error.
        shutil.copytree(MODULE, copy, dirs_exist_ok=True)
        command = ["go", "mod", "download", "-json", *FILES]
        result = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {result.returncode}\n{(result.stdout + result.stderr)[-4000:]}")
    # One object follows the other without a comma.
    modules = json.loads("[{}]".format(result.stdout.replace("}\n{", "},{")))
    for module in modules:
        if f"{module['Path']} {module['Version']} {module['Sum']}\n" not in pinned:
            raise RuntimeError(f"{module['Path']} {module['Version']} is not in {MODULE / 'go.sum'}")
    return {module["Path"]: Path(module["Dir"]) for module in modules}
