"""`make version`: the version of this checkout; with TAG=, a check that the tag names it.

Everything that names the version must agree, or a release would contradict itself.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

import yaml

from tools.release.package import ROOT, read_project


def read_versions() -> dict[str, str]:
    """Return the version in each place."""
    chart: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    released = re.findall(r"^## \[(\d\S*)\] - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = {
        "pyproject.toml": read_project()["version"],
        "version in Chart.yaml": chart["version"],
        "appVersion in Chart.yaml": str(chart["appVersion"]),
        "the newest section of CHANGELOG.md": released[0],
    }
    for page in ("README.md", "docs/install.md"):
        for tag in sorted(set(re.findall(r"lease-webhook(?::|, newTag: )(\d[\w.]*)", (ROOT / page).read_text()))):
            found[f"the image {tag} in {page}"] = tag
    return found


def find_problems(found: dict[str, str], tag: str) -> list[str]:
    """Return the places that disagree with pyproject.toml; `tag` is "" if there is none."""
    version = found["pyproject.toml"]
    other = [f"{place} says {text}, not {version}" for place, text in found.items() if text != version]
    if tag and tag != f"v{version}":
        other.append(f"the tag is {tag}, not v{version}")
    return other


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the version or the disagreements. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.version", description=__doc__)
    parser.add_argument("--tag", default="")
    options = parser.parse_args(arguments)
    found = read_versions()
    if wrong := find_problems(found, options.tag):
        print("\n".join(f"FAILED: {problem}" for problem in wrong), file=sys.stderr)
        return 1
    print(found["pyproject.toml"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
