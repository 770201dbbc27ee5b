"""CPython for WebAssembly and the packages in it, from lock files: Pyodide from npm, wheels from PyPI.

Pure Python packages come from the virtual environment, which was installed by hash; compiled ones are downloaded as
wheels for the platform that Pyodide names, by the hashes of the same lock files.
"""

import json
import resource
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build/web"
LOCKED: Final = ("package.json", "package-lock.json")
PURE: Final = ("click", "semver", "pyyaml")
"""Packages that the commands of the page import; of PyYAML the part in Python: no wheel has libyaml for WebAssembly."""
COMPILED: Final = ("msgspec",)
REQUIREMENTS: Final = "requirements.txt"
LICENSES: Final = "licenses"


def install_pyodide() -> Path:
    """Install the locked npm packages below `build/`, and return the folder of Pyodide; programs of npm are not run."""
    here, package = Path(__file__).parent, BUILD / "node_modules/pyodide"
    lock = "".join((here / name).read_text() for name in LOCKED)
    stamp = BUILD / "npm.lock"
    if stamp.exists() and stamp.read_text() == lock:
        return package
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in LOCKED:
        shutil.copy(here / name, BUILD / name)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], BUILD)
    stamp.write_text(lock)
    return package


def download_wheels(names: Sequence[str], requirements: str = REQUIREMENTS) -> list[Path]:
    """Download wheels for the platform of Pyodide, by the hashes of a lock file, and return their paths."""
    info = json.loads((install_pyodide() / "pyodide-lock.json").read_text())["info"]
    version = "".join(info["python"].split(".")[:2])
    folder = BUILD / f"wheels-{info['abi_version']}"
    locked = "".join(_find_locked(name, ROOT / requirements) for name in names)
    stamp = folder / f"{'-'.join(names)}.lock"
    if not stamp.exists() or stamp.read_text() != locked:
        folder.mkdir(parents=True, exist_ok=True)
        chosen = folder / "requirements.txt"
        chosen.write_text(locked)
        platform = ["--platform", f"pyemscripten_{info['abi_version']}_wasm32", "--abi", f"cp{version}"]
        python = ["--implementation", "cp", "--python-version", version, "--only-binary", ":all:"]
        checked = ["--require-hashes", "--no-deps", "--dest", str(folder), "-r", str(chosen)]
        run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                *platform,
                *python,
                *checked,
            ]
        )
        stamp.write_text(locked)
    pairs = ((name, metadata.version(name)) for name in names)
    return [next(folder.glob(f"{name}-{version}-*.whl")) for name, version in pairs]


def _find_locked(name: str, requirements: Path) -> str:
    """Return the lines of a lock file that pin one package, with its hashes."""
    lines = requirements.read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next(number for number in range(begin, len(lines)) if not lines[number].endswith("\\"))
    return "\n".join(lines[begin : end + 1]) + "\n"


def put_packages(folder: Path, compiled: Iterable[str] = COMPILED, requirements: str = REQUIREMENTS) -> None:
    """Write compiled packages into a folder of packages, as their wheels have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in download_wheels([*compiled], requirements):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def put_pure(folder: Path, names: Iterable[str] = PURE) -> None:
    """Write the Python files of packages of the virtual environment into a folder of packages."""
    installed = Path(sysconfig.get_paths()["purelib"])
    for name in names:
        for file in metadata.files(name) or []:
            if ".dist-info" in file.parts[0] or file.suffix == ".py":
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(installed / file, target)


def run_in_pyodide(module: str, words: Sequence[str], *folders: Path, path: Sequence[str] = (), stack: int = 0) -> int:
    """Run a module of Python in Pyodide, and return its exit code.

    It sees some folders under their own paths and works in the first one; `path` is put before Python's import path.
    `stack` is in bytes, 0 for Node's own.
    """
    given = {
        "pyodide": str(install_pyodide()),
        "folders": [str(folder) for folder in folders],
        "path": [*path],
        "cwd": str(folders[0]),
        "module": module,
        "words": [*words],
    }
    options = [f"--stack-size={stack // 1024 * 9 // 10}"] if stack else []
    if stack:
        resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    program = ["node", *options, str(Path(__file__).with_name("run.mjs")), json.dumps(given)]
    return subprocess.run(program, check=False).returncode


def run(words: Sequence[str], folder: Path = ROOT) -> None:
    """Run a program; raises CalledProcessError if it fails."""
    subprocess.run(words, cwd=folder, check=True)
