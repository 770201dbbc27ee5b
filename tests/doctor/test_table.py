"""Each file of tests/data/doctor is one configuration; its second line names what the doctor must find in it."""

import re
from pathlib import Path

import pytest

from tests.doctor.shipped import DATA
from webhook.cli.main import main

FILES = sorted(DATA.glob("*.yaml"))
_CHECK = re.compile(r"^  ([a-z0-9-]+)  ", re.MULTILINE)


def expected(path: Path) -> set[str]:
    about, finding = path.read_text().splitlines()[:2]
    assert about.startswith("# ")
    names = finding.removeprefix("# finding: ").split(", ")
    return set() if names == ["none"] else set(names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_finds_exactly_what_the_file_says(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--input", str(path)])
    output = capsys.readouterr().out
    wanted = expected(path)
    assert set(_CHECK.findall(output)) == wanted
    assert code == (1 if wanted else 0)
    # Each finding says what can happen and what to change.
    assert output.count("      risk: ") == output.count("      fix: ") == len(_CHECK.findall(output))


@pytest.mark.parametrize(
    ("name", "risk"),
    [
        pytest.param(
            "wildcard-versions", "in a form that the webhook does not decode.", id="any version, also one to come"
        ),
        pytest.param(
            "candidates-without-v1alpha1",
            "an API server that serves leasecandidates only in v1alpha1 never sends them for review.",
            id="a version is missing",
        ),
    ],
)
def test_versions_are_a_risk_in_two_ways(name: str, risk: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", str(DATA / f"{name}.yaml")]) == 1
    (shown,) = re.findall(r"  versions  .*?\n      fix", capsys.readouterr().out, re.DOTALL)
    text = " ".join(shown.split())
    assert text.endswith(f"{risk} fix")
    assert ("serves" in text) == ("serves" in risk)


def test_every_check_of_the_doctor_has_a_file() -> None:
    sources = "".join(path.read_text() for path in (DATA.parents[2] / "webhook/api_server/doctor").glob("*.py"))
    named = set(
        re.findall(r'(?:danger|finding)\(\s*f?"(?!fence-|stamp-|rules-)([a-z0-9-]+)"', sources)
    )  # test_fences, test_stamps and test_rules have those
    # The date moves: what ends soon is made by test_certificate; what does not listen, by tests/cli/test_status.py.
    assert named - {"certificate-ends-soon", "target-port-closed"} <= {
        check for path in FILES for check in expected(path)
    }
    assert {"control-plane-in-scope", "node-leases-in-scope", "malformed"} <= {
        check for path in FILES for check in expected(path)
    }
