"""Lays out the file tree of the image: python assemble.py PACKAGES TREE.

Runs inside the build stage, with the interpreter that is to be shipped and the standard library alone. It copies the
interpreter, its standard library without what only developers use, the packages, and every shared library that any of
them is linked to, each to its own path; then compiles, because the image is read-only.

It also names the Debian packages that files come from, as distroless images do: a stanza and the files of each in
/var/lib/dpkg/status.d, where scanners look, and its copyright file.
"""

import compileall
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

UNUSED = shutil.ignore_patterns(
    *("__pycache__", "site-packages", "config-*", "*.a"),
    *("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "tkinter", "turtledemo", "turtle.py"),
    # Debian's hook for a crash reporter, which is not here.
    "sitecustomize.py",
    *("curses", "dbm", "sqlite3"),
    *("_curses*", "_dbm*", "_gdbm*", "_sqlite3*", "_test*", "_tkinter*", "_xxtest*", "nis.*", "readline.*"),
)
USER = 65532
DPKG = Path("/var/lib/dpkg")
_IN_USR = re.compile(r"\Ausr/(?=(?:bin|sbin|lib|lib32|lib64|libx32)/)")
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")


def main(packages: Path, tree: Path) -> None:
    """Lay out `tree`, which must not exist."""
    tree.mkdir(parents=True)
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    _copy(interpreter, tree)
    shutil.copytree(library, _inside(tree, library), ignore=UNUSED)
    shutil.copytree(packages, tree / "packages", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    short = tree / "usr" / "local" / "bin" / "python3"
    if not short.exists():
        short.parent.mkdir(parents=True, exist_ok=True)
        short.symlink_to(interpreter)
    for shared in _libraries(
        [interpreter, *_inside(tree, library).glob("lib-dynload/*.so"), *packages.rglob("*.so*")], packages
    ):
        if not _inside(tree, shared).exists():
            _copy(shared, tree)
    _name_the_packages(tree)
    _name_the_user(tree / "etc")
    # Hashes instead of times, unchecked: the same sources make the same bytes, and nothing is looked up at start.
    for sources in (_inside(tree, library), tree / "packages"):
        compileall.compile_dir(
            sources, quiet=1, stripdir=tree, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )


def _libraries(binaries: Iterable[Path], packages: Path) -> set[Path]:
    """Return what the dynamic linker would load, all the way down; the linker itself too."""
    found: set[Path] = set()
    for binary in binaries:
        listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)  # noqa: S603, S607 - the build stage's own
        if "not found" in listed.stdout:
            raise SystemExit(f"{binary} is linked to a library that is not here:\n{listed.stdout}")
        found.update(Path(path) for path in _LINKED.findall(listed.stdout))
    # A library inside a package finds its neighbors by a path relative to itself.
    return {path for path in found if packages not in path.parents}


def _copy(file: Path, tree: Path) -> None:
    target = _inside(tree, file)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file.resolve(), target)


def _inside(tree: Path, path: Path) -> Path:
    return tree / path.relative_to("/")


def _name_the_packages(tree: Path) -> None:
    """Write which Debian packages the files of `tree` come from; a base without dpkg's database has none."""
    owners = {}
    for listed in sorted(DPKG.glob("info/*.md5sums")):
        name = listed.name.removesuffix(".md5sums").partition(":")[0]
        for line in listed.read_text().splitlines():
            digest, _, path = line.partition("  ")
            owners[_merge(path)] = (name, digest)
    files = {}
    for file in sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()):
        # It was copied from the same path here, which may be a link to the file that the package brought.
        path = Path("/") / file.relative_to(tree)
        if path.exists() and (owner := owners.get(_merge(str(path.resolve())))):
            files.setdefault(owner[0], []).append(f"{owner[1]}  {path.relative_to('/')}\n")
    stanzas = DPKG / "status"
    for stanza in stanzas.read_text().split("\n\n") if stanzas.exists() else ():
        name = stanza.partition("\n")[0].removeprefix("Package: ")
        if name in files:
            there = _inside(tree, DPKG) / "status.d"
            there.mkdir(parents=True, exist_ok=True)
            (there / name).write_text(f"{stanza.strip()}\n")
            (there / f"{name}.md5sums").write_text("".join(files[name]))
            for licensed in (Path("/usr/share/doc") / name / "copyright", Path("/etc/os-release")):
                if licensed.exists():
                    _copy(licensed, tree)


def _merge(path: str) -> str:
    """A path as packages and linkers both may write it: /lib is a link to /usr/lib, and so on."""
    return _IN_USR.sub("", path.lstrip("/"))


def _name_the_user(etc: Path) -> None:
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(f"nonroot:x:{USER}:{USER}::/:/none\n")
    (etc / "group").write_text(f"nonroot:x:{USER}:\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
