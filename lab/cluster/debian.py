"""Programs from Debian packages, unpacked into the cache and installed nowhere."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.e2e.toolchain import MissingToolchainError, find_cache_directory

WITH_DATABASE = "with dpkg's database"
"""Tells trees that have it from older ones in a cache."""
MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
"""Directories that are links into /usr on a Debian system, while packages may still name them."""


def unpack(*packages: str, complete: bool = False) -> Path:
    """Return the tree of `packages` and of their dependencies beyond this machine.

    `complete`: beyond an empty machine. No maintainer script is run. The directory is named after the exact versions,
    so an update makes another one. Raises MissingToolchainError without apt, or if a package cannot be had.
    """
    if not shutil.which("apt-get"):
        raise MissingToolchainError(f"{', '.join(packages)} come from Debian packages, and there is no apt-get here")
    cache = find_cache_directory() / "debian"
    cache.mkdir(parents=True, exist_ok=True)
    uris = _run_apt("--print-uris", packages, cache, complete=complete)
    files = sorted(line.split()[1] for line in uris.splitlines() if line.startswith("'"))
    tree = cache / hashlib.sha256("\n".join([WITH_DATABASE] * complete + files).encode()).hexdigest()[:16]
    if tree.exists():
        return tree
    unfinished = cache / f"{tree.name}.{os.getpid()}"
    archives = unfinished / "archives"
    (archives / "partial").mkdir(parents=True)
    (unfinished / "root").mkdir()
    _run_apt("--download-only", packages, cache, f"-oDir::Cache::archives={archives}", complete=complete)
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", archive, unfinished / "root"], check=True)
        if complete:
            _record(archive, unfinished)
    _merge(unfinished / "root")
    (unfinished / "root").rename(tree)
    shutil.rmtree(unfinished)
    return tree


def wrap_command(tree: Path, command: Sequence[str | Path]) -> list[str]:
    """Return the command in a mount namespace of its own, in which /usr has the tree's programs. Needs root."""
    return ["unshare", "--mount", "sh", "-ec", f'{format_overlay(tree)}; exec "$@"', "sh", *map(str, command)]


def format_overlay(tree: Path) -> str:
    """Return the shell commands that lay the tree's /usr over the machine's, in a separate mount namespace.

    Whatever the programs write to /etc and /var/lib goes to memory.
    """
    steps = ["mount --make-rprivate /", f"mount -t overlay overlay -o lowerdir={tree}/usr:/usr /usr"]
    steps.append("mount -t tmpfs tmpfs /mnt")
    for place in ("/etc", "/var/lib"):
        upper, work = (f"/mnt{place}/{name}" for name in ("upper", "work"))
        steps.append(f"mkdir -p {upper} {work}")
        steps.append(f"mount -t overlay overlay -o lowerdir={place},upperdir={upper},workdir={work} {place}")
    return " && ".join(steps)


def _run_apt(action: str, packages: Sequence[str], cache: Path, *options: str, complete: bool) -> str:
    empty = cache / "status"
    empty.touch()
    status = [f"-oDir::State::status={empty}"] if complete else []
    # As another user, apt could not write into the cache of root.
    command = ["apt-get", "-oAPT::Sandbox::User=root", "-oDebug::NoLocking=1", *status, *options]
    result = subprocess.run(
        [*command, "install", action, "--yes", "--no-install-recommends", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        complaint = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise MissingToolchainError(
            f"cannot get Debian packages (is `apt-get update` needed?): apt-get, exit {result.returncode}: {complaint}"
        )
    return result.stdout


def _record(archive: Path, unfinished: Path) -> None:
    """Note a package in dpkg's database of the tree, as an installation would."""
    control = unfinished / "control" / archive.stem
    control.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "-e", archive, control], check=True)
    database = unfinished / "root" / "var" / "lib" / "dpkg"
    (database / "info").mkdir(parents=True, exist_ok=True)
    head, _, fields = (control / "control").read_text().strip().partition("\n")
    with (database / "status").open("a") as status:
        status.write(f"{head}\nStatus: install ok installed\n{fields}\n\n")
    if (control / "md5sums").exists():
        name = head.removeprefix("Package: ")
        shutil.copy(control / "md5sums", database / "info" / f"{name}.md5sums")


def _merge(root: Path) -> None:
    """Move the contents of /bin and its like to /usr, and link them, as on every Debian since 12."""
    for name in MERGED:
        old, new = root / name, root / "usr" / name
        if not old.is_dir():
            continue
        shutil.copytree(old, new, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(old)
        old.symlink_to(f"usr/{name}")
