"""The field manager, built once from pinned Go modules into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from lab.e2e.toolchain import MissingToolchainError, find_cache_directory

SOURCE: Final = Path(__file__).parent / "fieldmanager"


def build_field_manager() -> Path:
    """Build the program, in a directory named after its sources, so that a change of them builds anew.

    Raises:
        MissingToolchainError: there is no Go to build it with.
        RuntimeError: Go could not build it.

    """
    digest = hashlib.sha256()
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    target = find_cache_directory() / "bin" / digest.hexdigest()[:16] / SOURCE.name
    if target.exists():
        return target
    go = shutil.which("go")
    if go is None:
        raise MissingToolchainError("the field manager must be built from Go modules, and there is no `go` on the PATH")
    print(f"building the field manager into {target.parent} (once)", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(unfinished), "."]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    result = subprocess.run(command, cwd=SOURCE, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"go could not build the field manager:\n{result.stderr[-4000:]}")
    unfinished.rename(target)
    return target
