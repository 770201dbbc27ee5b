"""axe-core, which finds obstacles for people with a disability; fetched by npm once, checked by hash."""

import hashlib
import subprocess
import tarfile
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from lab.e2e.toolchain import find_cache_directory

PACKAGE: Final = "axe-core"
VERSION: Final = "4.14.1"
SHA512: Final = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
GRAVE: Final = frozenset({"serious", "critical"})


class WrongHashError(Exception):
    """Raised when the package is another one than the one that was reviewed."""


def fetch_axe_script() -> str:
    """Return the source of axe-core."""
    directory = find_cache_directory() / "axe"
    archive = directory / f"{PACKAGE}-{VERSION}.tgz"
    if not archive.exists():
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=directory, check=True, stdout=subprocess.DEVNULL
        )
    return _extract_script(archive)


def _extract_script(archive: Path) -> str:
    digest = b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise WrongHashError(f"{archive} has sha512 {digest}, not {SHA512}")
    with tarfile.open(archive) as package:
        member = package.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def find_faults(page: Any) -> list[str]:
    """Return each serious or critical fault of a page that is open: its rule, its meaning, and its place."""
    page.evaluate(fetch_axe_script())
    results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:5]]}"
        for one in results["violations"]
        if one["impact"] in GRAVE
    ]
