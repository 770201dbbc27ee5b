"""`make web`: the page as a folder for any file server, `build/web/page`.

Everything but `index.html` and `sw.js` is below a folder named by its content, so that caches may keep it for good.
"""

import hashlib
import json
import re
import shutil
import sys
import time
import zipfile
from importlib import metadata
from pathlib import Path
from string import Template
from typing import Final

from tools.web.examples import put_examples
from tools.web.runtime import BUILD, COMPILED, PURE, ROOT, install_pyodide, put_packages, put_pure, run_in_pyodide
from webhook.analysis.timeline.page import make_content_security_policy

OUTPUT: Final = BUILD / "page"
_PAGE: Final = ROOT / "webhook/browser/page"
_PYODIDE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_UNUSED: Final = ("cli/example", "browser/page")
"""Data of the package that no call of the page reads."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_COMPONENTS: Final = """\
What this page consists of, and under which licenses.

lease-webhook {version}         Apache-2.0             LICENSE
d3, in timelines                ISC                    d3.txt
Pyodide {pyodide}               MPL-2.0                MPL-2.0.txt
CPython {python}, in Pyodide    PSF-2.0                Python.txt
{packages}
The source of Pyodide, unchanged here, is the npm package pyodide {pyodide} and the repository that it names.
"""


def main() -> None:
    """Write the folder, and print its size."""
    began = time.monotonic()
    stage = BUILD / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    for folder in ("scripts", "pyodide", "examples", "licenses"):
        (stage / folder).mkdir(parents=True)
    for script in sorted((_PAGE / "scripts").iterdir()):
        shutil.copyfile(script, stage / "scripts" / script.name)
    shutil.copyfile(_PAGE / "page.css", stage / "page.css")
    for name in _PYODIDE:
        shutil.copyfile(install_pyodide() / name, stage / "pyodide" / name)
    info = json.loads((install_pyodide() / "pyodide-lock.json").read_text())["info"]
    # Pyodide asks for its list of packages; none of them is loaded.
    (stage / "pyodide/pyodide-lock.json").write_text(json.dumps({"info": info, "packages": {}}))
    put_examples(stage / "examples")
    packages = _make_packages()
    _put_licenses(stage / "licenses", packages, info["python"])
    _put_metadata(packages)
    if run_in_pyodide("webhook.browser.calls", [], packages, path=[str(packages)]):
        sys.exit("make web: Pyodide could not import what the page calls")
    _zip(packages, stage / "packages.zip")
    _publish(stage)
    _print_sizes(time.monotonic() - began)


def _make_packages() -> Path:
    """Return a folder with the packages, compiled to bytecode by the Python that imports them."""
    folder = BUILD / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    put_packages(folder)
    put_pure(folder)
    unused = [ROOT / "webhook" / name for name in _UNUSED]
    for file in sorted((ROOT / "webhook").rglob("*")):
        is_unused = any(file.is_relative_to(one) for one in unused) or "__pycache__" in file.parts
        if file.is_file() and not is_unused:
            target = folder / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    options = ["-b", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder)]
    if run_in_pyodide("compileall", [*options, str(folder)], folder):
        sys.exit("make web: Pyodide could not compile the packages")
    for source in folder.rglob("*.py"):
        source.unlink()
    return folder


def _put_metadata(packages: Path) -> None:
    """Write the version of lease-webhook, and remove all other metadata of packages, which nothing reads."""
    for other in packages.glob("*.dist-info"):
        shutil.rmtree(other)
    version = metadata.version("lease-webhook")
    own = packages / f"lease_webhook-{version}.dist-info"
    own.mkdir()
    (own / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lease-webhook\nVersion: {version}\n")


def _zip(folder: Path, target: Path) -> None:
    """Write a folder as an archive whose bytes follow from the files alone."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(folder.rglob("*")):
            name = str(file.relative_to(folder))
            if file.is_file():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)


def _put_licenses(folder: Path, packages: Path, python: str) -> None:
    """Write the license of each component, and the list of all."""
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    shutil.copyfile(ROOT / "webhook/analysis/timeline/page/vendor/LICENSE", folder / "d3.txt")
    for license_text in sorted((Path(__file__).parent / "licenses").iterdir()):
        shutil.copyfile(license_text, folder / license_text.name)
    rows: list[str] = []
    for name in (*PURE, *COMPILED):
        about = metadata.metadata(name)
        (own,) = packages.glob(f"{name}-*.dist-info/licenses/LICENSE*")
        shutil.copyfile(own, folder / f"{name}.txt")
        terms = about["License-Expression"] or about["License"]
        what = f"{name} {about['Version']}"
        rows.append(f"{what:<32}{terms:<23}{name}.txt")
    version = json.loads((install_pyodide() / "package.json").read_text())["version"]
    ours = metadata.version("lease-webhook")
    text = _COMPONENTS.format(version=ours, pyodide=version, python=python, packages="\n".join(rows))
    (folder / "README.txt").write_text(text)


def _publish(stage: Path) -> None:
    """Move the files to the output, below a folder named by their content."""
    files = sorted(file for file in stage.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(stage)} {len(content)}\n".encode() + content)
    name = f"v-{digest.hexdigest()[:16]}"
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    shutil.move(stage, OUTPUT / name)
    listed = json.dumps([f"{name}/{file.relative_to(stage)}" for file in files])
    for page in ("index.html", "sw.js"):
        text = Template((_PAGE / page).read_text()).safe_substitute(files=name, policy=_format_policy(), listed=listed)
        (OUTPUT / page).write_text(text)


def _format_policy() -> str:
    """Return the Content-Security-Policy: this origin alone, WebAssembly, and the scripts and style of timelines.

    A timeline is a frame, and Python a worker; both begin as a blob and inherit the policy.
    """
    timeline = make_content_security_policy()
    scripts, style = (re.search(rf"{kind}-src ([^;]*)", timeline) for kind in ("script", "style"))
    assert scripts is not None
    assert style is not None
    own = [
        "default-src 'self'",
        f"script-src 'self' 'wasm-unsafe-eval' {scripts[1]}",
        f"style-src 'self' {style[1]}",
        "img-src 'self' data:",
        "worker-src 'self' blob:",
        "frame-src blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(own)


def _print_sizes(seconds: float) -> None:
    total = 0
    for file in sorted(OUTPUT.rglob("*"), key=lambda one: -one.stat().st_size if one.is_file() else 0):
        if file.is_file():
            total += file.stat().st_size
            if file.stat().st_size > 100_000:
                print(f"{file.stat().st_size / 1e6:6.2f} MB  {file.relative_to(OUTPUT)}")
    print(f"{total / 1e6:6.2f} MB in {OUTPUT.relative_to(ROOT)}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
