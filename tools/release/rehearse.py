"""`make rehearsal`: the files of a release, built twice from the commit, compared, signed and verified.

All but the image, which `make image` builds twice, and steps that need the identity of a workflow. Each tool that will
look at a file looks at it here: twine, Helm, Krew's validator, a validator of CycloneDX, zizmor, and sigstore-go for
signatures and provenance, by a key that is generated for this and thrown away. Nothing is sent anywhere.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from lab.e2e.toolchain import build
from tools.release.reproducible import ROOT, find_different
from tools.release.signing import (
    generate_key,
    make_provenance,
    make_public_pem,
    make_signature_bundle,
    make_statement_bundle,
)
from tools.rendered.chart import run_helm

URL: Final = "https://git.example/platform/lease-webhook"
IMAGE: Final = f"registry.example/lease-webhook@sha256:{'0' * 64}"
DIST: Final = ROOT / "build" / "rehearsal"
"""The folder of the files and their signatures."""
VERIFY: Final = Path(__file__).parent / "go" / "verify"


def main(arguments: Sequence[str] | None = None) -> int:
    """Rehearse a release of HEAD. Return 1 if something is not as a release needs it."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.rehearse", description=__doc__)
    parser.add_argument("--url", default=URL, help="the repository, for links and Krew")
    options = parser.parse_args(arguments)
    if subprocess.run(["git", "-C", str(ROOT), "status", "--porcelain"], capture_output=True, check=True).stdout:
        print("a release is made of a commit, and the tree has changes that are not in it", file=sys.stderr)
        return 1
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    commit = head.stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        folders = (Path(temporary) / name for name in ("first", "second-of-another-length"))
        first, second = (_build_all(folder, commit, options.url) for folder in folders)
        failures = [f"{name} is not the same bytes twice" for name in find_different(first, second)]
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
    for check in (
        _check_by_twine,
        _check_by_helm,
        _check_by_krew,
        _check_by_cyclonedx,
        _check_by_zizmor,
        _check_by_sigstore,
    ):
        found = [*check(commit, options.url)]
        print(f"{check.__name__.removeprefix('_check_by_')}: {'; '.join(found) or 'well'}", flush=True)
        failures += found
    for path in sorted(DIST.iterdir()):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _build_all(tree: Path, commit: str, url: str) -> Path:
    """Build everything in a clone of a commit; return its folder dist."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", "--no-checkout", str(ROOT), str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", "--detach", commit], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*command: str, into: Path | None = None) -> None:
        done = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE)
        if into:
            into.write_bytes(done.stdout)

    python, dist = sys.executable, tree / "dist"
    run(python, "-m", "tools.release.package", f"--url={url}", "--build-only")
    run(python, "-m", "tools.release.krew", f"--url={url}")
    run(python, "-m", "tools.release.pex", "--build-only")
    run(python, "-m", "tools.release.bill")
    run(python, "-m", "tools.rendered.chart", str(dist), f"--url={url}", f"--image={IMAGE}")
    for source in ("cert-manager", "openshift"):
        command = [python, "-m", "webhook", "install", "--certificate", source, "--image", IMAGE]
        run(*command, into=dist / f"install-{source}.yaml")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("".join(sums))
    return dist


def _run_check(*command: object) -> Iterator[str]:
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"exit {done.returncode}: {(done.stderr or done.stdout).strip()}"


def _check_by_twine(_commit: str, _url: str) -> Iterator[str]:
    yield from _run_check(sys.executable, "-m", "twine", "check", "--strict", *DIST.glob("lease_webhook-*"))


def _check_by_helm(_commit: str, _url: str) -> Iterator[str]:
    (chart,) = DIST.glob("lease-webhook-*.tgz")
    done = run_helm("lint", "--strict", "--set=image.repository=registry.example/lease-webhook", chart=chart)
    if done.returncode:
        yield done.stdout + done.stderr


def _check_by_krew(_commit: str, _url: str) -> Iterator[str]:
    source = Path(__file__).parent / "go" / "krew"
    program = build(source, "sigs.k8s.io/krew/cmd/validate-krew-manifest", "validate-krew-manifest")
    # It would download the archives, which are published nowhere.
    yield from _run_check(program, f"-manifest={DIST / 'lease-webhook.yaml'}", "-skip-install")


def _check_by_cyclonedx(_commit: str, _url: str) -> Iterator[str]:
    for file in DIST.glob("*.cdx.json"):
        if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()):
            yield f"{file.name}: {problem}"


def _check_by_zizmor(_commit: str, _url: str) -> Iterator[str]:
    yield from _run_check(Path(sys.executable).parent / "zizmor", "--offline", "--quiet", ".github", "action.yml")


def _check_by_sigstore(commit: str, url: str) -> Iterator[str]:
    """Sign each file, state the origin of all, and verify both; a file that was changed must be refused."""
    program = build(VERIFY, ".", "verify-bundle")
    files = sorted(DIST.iterdir())
    key = generate_key()
    public = DIST / "rehearsal.pub.pem"
    public.write_bytes(make_public_pem(key))
    stated = DIST / "provenance.sigstore.json"
    stated.write_text(make_statement_bundle(key, make_provenance(files, url, commit)))
    for file in files:
        bundle = DIST / f"{file.name}.sigstore.json"
        bundle.write_text(make_signature_bundle(key, file.read_bytes()))
        yield from _run_check(program, public, bundle, file)
        yield from _run_check(program, public, stated, file)
    with tempfile.NamedTemporaryFile() as changed:
        changed.write(files[0].read_bytes() + b"\n")
        changed.flush()
        for bundle in (DIST / f"{files[0].name}.sigstore.json", stated):
            if not [*_run_check(program, public, bundle, changed.name)]:
                yield f"{bundle.name} holds for a file that was changed"


if __name__ == "__main__":
    sys.exit(main())
