"""`make audit`: known vulnerabilities of the locked packages, by pip-audit. Unchecked packages are named."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tools.release.package import ROOT

LOCK: Final = ROOT / "requirements.txt"


class Audit(Struct, frozen=True):
    """The result of an audit.

    `found` are vulnerabilities in words, `unchecked` are packages about which the service gave nothing.
    """

    checked: int
    found: tuple[str, ...]
    unchecked: tuple[str, ...]


def read(report: dict[str, Any]) -> Audit:
    """Return the findings of a report of pip-audit in JSON."""
    found: list[str] = []
    unchecked: list[str] = []
    for dependency in report["dependencies"]:
        name = f"{dependency['name']} {dependency.get('version', '')}".strip()
        if "skip_reason" in dependency:
            unchecked.append(dependency["name"])
        for vulnerability in dependency.get("vulns", ()):
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version"
            found.append(f"{name}: {vulnerability['id']}, fixed in {fixed}")
    return Audit(len(report["dependencies"]) - len(unchecked), tuple(found), tuple(unchecked))


def find_outcome(audit: Audit, *, required: bool) -> tuple[int, str]:
    """Return the exit status and a message.

    Packages that were not checked fail only if others were, or if all must be.
    """
    if audit.found:
        return 1, "\n".join(f"FAILED: {line}" for line in audit.found)
    if audit.unchecked and (audit.checked or required):
        return 1, f"FAILED: not checked: {', '.join(audit.unchecked)}"
    if audit.unchecked:
        return 0, "\n*** SKIPPED, nothing was checked: the service of advisories does not answer here ***\n"
    return 0, f"{audit.checked} locked packages, no known vulnerability"


def main(arguments: Sequence[str] | None = None) -> int:
    """Query and print. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.advisories", description=__doc__)
    parser.add_argument("--required", action="store_true", help="fail, and do not skip, if nothing could be checked")
    options = parser.parse_args(arguments)
    program = Path(sys.executable).parent / "pip-audit"
    command = [str(program), f"--requirement={LOCK}", "--require-hashes", "--disable-pip", "--progress-spinner=off"]
    done = subprocess.run([*command, "--format=json"], capture_output=True, text=True, check=False)
    try:
        audit = read(json.loads(done.stdout))
    except (ValueError, KeyError):
        print(f"FAILED: pip-audit: exit {done.returncode}: {done.stderr.strip()[-2000:]}", file=sys.stderr)
        return 1
    status, text = find_outcome(audit, required=options.required)
    print(text, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
