"""The workflow of a release does by make what any machine can do; and the version is the same everywhere."""

import re
from typing import Any

import pytest
import yaml

from tools.release.package import ROOT
from tools.release.version import find_problems, read_versions

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


def test_the_version_is_the_same_everywhere() -> None:
    versions = read_versions()
    assert len(versions) == 6
    assert find_problems(versions, f"v{versions['pyproject.toml']}") == []


def test_a_place_and_a_tag_that_disagree_are_named() -> None:
    assert find_problems({"pyproject.toml": "1.0.0", "Chart.yaml": "0.9.0"}, "v1.0.1") == [
        "Chart.yaml says 0.9.0, not 1.0.0",
        "the tag is v1.0.1, not v1.0.0",
    ]


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


def test_every_action_is_pinned_by_its_digest() -> None:
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    used = [line for file in files for line in re.findall(r"uses: (.+)", file.read_text())]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
