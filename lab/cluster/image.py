"""`make image`: the image by buildah, without a daemon and without a registry, built twice and compared.

The base of the build stage is Python from Debian packages; what is shipped starts from nothing, so the base leaves no
trace in it but the interpreter and the libraries that it is linked to.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from lab.cluster.debian import unpack, wrap_command
from lab.e2e.toolchain import MissingToolchainError

ROOT = Path(__file__).parents[2]
NAME = "lease-webhook:checkout"
BASE = "localhost/python-build:1"
BASE_PACKAGES = (
    *("base-files", "bash", "coreutils", "dash", "findutils", "grep", "libc-bin", "sed"),
    *("python3", "python3-pip", "python-is-python3"),
)
TRUST = "/etc/ssl/certs"


class Image(Struct, frozen=True):
    """An image in a docker archive, with the digest of its manifest."""

    archive: Path
    digest: str


class Builder:
    """A builder that runs buildah with a separate store, which is deleted at the end. A context manager; needs root."""

    def __init__(self, directory: Path, sources: Path = ROOT) -> None:
        """Set up the builder.

        `directory` is on a disk and takes the store; `sources` is the checkout that is built.
        """
        self._tree = unpack("buildah")
        self._sources = sources
        self._directory = directory

    def __enter__(self) -> Self:
        self._store = Path(tempfile.mkdtemp(prefix="store-", dir=self._directory))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._store)

    def build_base(self) -> None:
        """Build the base of the build stage."""
        tree = unpack(*BASE_PACKAGES, complete=True)
        recipe = self._store / "Base"
        # The certificates and the settings of pip are the machine's; they are mounted, and never in the image.
        recipe.write_text("FROM scratch\nCOPY . /\nENV PIP_BREAK_SYSTEM_PACKAGES=1 PATH=/usr/local/bin:/usr/bin:/bin\n")
        self._run_buildah("build", "--timestamp=0", f"--file={recipe}", f"--tag={BASE}", str(tree))

    def build_webhook(self, revision: str, moment: int) -> str:
        """Build the image from nothing and return its digest; `moment` is the Unix time of all that is in it."""
        tag = f"localhost/built:{len(list(self._store.glob('digest-*')))}"
        arguments = {"BUILD_BASE": BASE, "REVISION": revision}
        machine = [f"--volume={path}:{path}:ro" for path in (TRUST, "/etc/pip.conf") if Path(path).exists()]
        self._run_buildah(
            *("build", "--no-cache", "--isolation=chroot", f"--timestamp={moment}", f"--tag={tag}", *machine),
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *("--ignorefile=deploy/Dockerfile.dockerignore", "--file=deploy/Dockerfile", "."),
        )
        self._last = tag
        return self._push(tag, "oci-archive", self._store / f"{tag.rpartition(':')[2]}.tar", "")

    def build_from_program(self, program: Path, tag: str, archive: Path) -> None:
        """Build an image that holds one static program and nothing else."""
        recipe = self._store / "Program"
        recipe.write_text(f'FROM scratch\nCOPY {program.name} /\nENTRYPOINT ["/{program.name}"]\n')
        self._run_buildah("build", "--timestamp=0", f"--file={recipe}", f"--tag={tag}", str(program.parent))
        self._push(tag, "docker-archive", archive, f":{tag}")

    def save(self, archive: Path, name: str = NAME) -> None:
        """Write the image that was built last to a docker archive, as `name`."""
        archive.unlink(missing_ok=True)
        self._push(self._last, "docker-archive", archive, f":docker.io/library/{name}")

    def _push(self, tag: str, transport: str, archive: Path, reference: str) -> str:
        digest = self._store / f"digest-{archive.name}"
        self._run_buildah("push", f"--digestfile={digest}", tag, f"{transport}:{archive}{reference}")
        return digest.read_text().strip()

    def _run_buildah(self, *arguments: str) -> None:
        store = [f"--root={self._store / 'root'}", f"--runroot={self._store / 'run'}", "--storage-driver=vfs"]
        action, *rest = arguments
        policy = f"--signature-policy={self._tree / 'etc' / 'containers' / 'policy.json'}"
        command = wrap_command(self._tree, ["buildah", *store, action, policy, *rest])
        result = subprocess.run(command, cwd=self._sources, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"buildah {action}: exit {result.returncode}\n{(result.stdout + result.stderr)[-4000:]}")


def build_image(archive: Path, *, twice: bool) -> Image:
    """Build the image of this checkout in `archive`. Raises RuntimeError if a second build differs from the first."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    revision, moment = _find_commit()
    with Builder(archive.parent) as builder:
        builder.build_base()
        digest = builder.build_webhook(revision, moment)
        if twice and (other := builder.build_webhook(revision, moment)) != digest:
            raise RuntimeError(f"two builds of the same sources differ: {digest} and {other}")
        builder.save(archive)
    return Image(archive, digest)


def _find_commit() -> tuple[str, int]:
    """Return the commit and its time; a directory without git has neither."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H %ct"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    revision, _, moment = result.stdout.strip().partition(" ")
    return (revision, int(moment)) if result.returncode == 0 else ("unknown", 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, compare, and print the path of the image. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.cluster.image", description=__doc__)
    parser.add_argument("--archive", type=Path, default=ROOT / "build" / "lease-webhook-image.tar")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        print("buildah needs root here; with docker: docker build -f deploy/Dockerfile .", file=sys.stderr)
        return 1
    try:
        image = build_image(options.archive.absolute(), twice=True)
    except MissingToolchainError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    print(f"{image.archive}: {image.archive.stat().st_size / 1e6:.0f} MB, two builds with one digest, {image.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
