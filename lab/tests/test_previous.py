"""The commit of the previous version is found without a tag."""

import subprocess
from pathlib import Path

import pytest

from lab.cluster import previous

IDENTITY = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def commit(root: Path, version: str, changelog: str) -> str:
    """Commit a version and a changelog, and return the label of the commit."""
    (root / "pyproject.toml").write_text(f'version = "{version}"\n')
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    for command in (["add", "."], ["commit", "--quiet", "--message", version]):
        subprocess.run(["git", "-C", root, *command], check=True, env={"PATH": "/usr/bin:/bin", **IDENTITY})
    head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return f"commit {head.stdout[:12]}"


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        pytest.param("## [0.3.0] - 2026-01-01\n\n- a\n", 1, id="of a release it is the release before"),
        pytest.param("## [Unreleased]\n\n## [0.3.0] - 2026-01-01\n\n- a\n", 1, id="an empty section is no change"),
        pytest.param("## [Unreleased]\n\n- b\n\n## [0.3.0] - 2026-01-01\n", 2, id="of what follows it is the release"),
    ],
)
def test_the_previous_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changelog: str, expected: int) -> None:
    monkeypatch.setattr(previous, "ROOT", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    labels = [commit(tmp_path, version, "") for version in ("0.1.0", "0.2.0")]
    labels.append(commit(tmp_path, "0.3.0", changelog))
    found = previous._release()
    assert found is not None
    assert found[0] == labels[expected]
