"""The workflow of a release does by make what any machine can do; and the version is the same everywhere."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.release.package import ROOT
from tools.release.version import find_problems, read_days, read_versions, set_version

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
RUNS = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
MAKE = [run for run in RUNS if re.match(r"(?:sudo .* )?make ", run)]
ONLY_THERE = ("docker ", "cosign ", "gh ", "cp ", "mkdir dist && cp ")
"""What needs a registry, the identity of the service, or its files."""
MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_step_is_a_target_or_needs_the_service() -> None:
    assert [run for run in RUNS if run not in MAKE and not run.lstrip().startswith(ONLY_THERE)] == []


@pytest.mark.parametrize("run", MAKE)
def test_every_target_and_variable_is_in_the_makefile(run: str) -> None:
    target, *variables = run.partition("make ")[2].split(maxsplit=1)
    assert re.search(rf"^{target}:.*## ", MAKEFILE, re.MULTILINE)
    for name in re.findall(r"\b([A-Z]+)=", " ".join(variables)):
        assert re.search(rf"\$\({name}\)", MAKEFILE), name


def test_a_job_has_only_the_rights_that_it_uses() -> None:
    assert WORKFLOW["permissions"] == {}
    writers = {name for name, job in WORKFLOW["jobs"].items() if job["permissions"].get("contents") == "write"}
    assert writers == {"publish"}
    for job in WORKFLOW["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_the_provenance_of_all_files_is_attached_to_the_release() -> None:
    steps = WORKFLOW["jobs"]["files"]["steps"]
    at = next(
        at for at, step in enumerate(steps) if step.get("uses", "").startswith("actions/attest-build-provenance@")
    )
    attest, copy, upload = steps[at : at + 3]
    assert attest["with"] == {"subject-path": "dist/*"}
    assert copy["env"]["BUNDLE"] == f"${{{{ steps.{attest['id']}.outputs.bundle-path }}}}"
    assert copy["run"] == 'cp "$BUNDLE" dist/provenance.sigstore.json'
    assert upload["with"]["path"] == "dist"
    (release,) = [run for run in RUNS if run.startswith("gh release create")]
    assert release.endswith(" dist/*")


def test_no_value_of_the_event_is_pasted_into_a_script() -> None:
    assert [run for run in RUNS if "${{" in run] == []


def test_the_version_and_its_day_are_the_same_everywhere() -> None:
    versions, days = read_versions(), read_days()
    named = [place for place, _ in versions]
    assert named[:5] == [
        "pyproject.toml",
        "version in Chart.yaml",
        "appVersion in Chart.yaml",
        "version in CITATION.cff",
        "the newest section of CHANGELOG.md",
    ]
    for page in ("README.md", "docs/install.md", "docs/check-in-ci.md", "docs/release.md", "deploy/Dockerfile"):
        assert f"an example in {page}" in named
    assert [place for place, _ in days] == ["the newest section of CHANGELOG.md", "date-released in CITATION.cff"]
    assert find_problems(versions, days, f"v{versions[0][1]}") == []


def test_a_place_a_day_and_a_tag_that_disagree_are_named() -> None:
    versions = [("pyproject.toml", "1.0.0"), ("Chart.yaml", "0.9.0")]
    days = [("CHANGELOG.md", "2026-01-02"), ("CITATION.cff", "2026-01-01")]
    assert find_problems(versions, days, "v1.0.1") == [
        "Chart.yaml says 0.9.0, not 1.0.0",
        "CITATION.cff says 2026-01-01, not 2026-01-02",
        "the tag is v1.0.1, not v1.0.0",
    ]


def _copy_what_names_the_version(root: Path) -> None:
    for name in (
        "pyproject.toml",
        "CHANGELOG.md",
        "CITATION.cff",
        "README.md",
        "docs",
        "deploy",
        "webhook/cli/export.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, root / name)


def test_a_version_that_is_set_and_its_day_stand_everywhere(tmp_path: Path) -> None:
    _copy_what_names_the_version(tmp_path)
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("\n## [", "\n## [71.2.3] - 2031-04-05\n\n## [", 1))
    before = {place for place, _ in read_versions(tmp_path)}
    assert "docs/install.md" in set_version("71.2.3", tmp_path)
    assert {*read_versions(tmp_path)} == {(place, "71.2.3") for place in before}
    assert {day for _, day in read_days(tmp_path)} == {"2031-04-05"}
    assert "lease_webhook-71.2.3-py3-none-any.whl" in (tmp_path / "docs" / "release.md").read_text()


def test_a_version_without_a_section_in_the_changelog_is_not_set(tmp_path: Path) -> None:
    _copy_what_names_the_version(tmp_path)
    before = read_versions(tmp_path)
    with pytest.raises(ValueError, match=r"write the section of 71\.2\.3 in CHANGELOG\.md first"):
        set_version("71.2.3", tmp_path)
    assert read_versions(tmp_path) == before


QUESTIONS = [
    "Which writes are refused that were not?",
    "Which objects must be applied again?",
    "Which settings or flags were removed?",
    "In what order, and how back?",
    "Which Kubernetes versions?",
]


def test_the_upgrade_notes_of_each_version_answer_every_question() -> None:
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    released = [section for section in sections if not section.startswith("[Unreleased]")]
    assert released
    for section in released:
        notes = section.partition("### Upgrade notes\n")[2].partition("\n### ")[0]
        answers = dict(re.findall(r"^\| (.+\?) \| (.+) \|$", notes, re.MULTILINE))
        assert list(answers) == QUESTIONS


def test_the_changelog_counts_nothing_that_the_next_change_adds_to() -> None:
    numbers = r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    counted = re.findall(
        rf"\b{numbers} (?:new|more) (?:\w+ )?\w+s\b", (ROOT / "CHANGELOG.md").read_text(), re.IGNORECASE
    )
    assert counted == []


def test_every_action_is_pinned_by_its_digest() -> None:
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    used = [line for file in files for line in re.findall(r"uses: (.+)", file.read_text())]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
