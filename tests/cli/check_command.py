"""The command `check` in an empty directory, and reviews for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.factories import make_lease, make_review, put
from webhook.cli.main import main

Run = Callable[..., tuple[int, str, str]]

STEAL = make_review(
    new=make_lease(
        put("spec.holderIdentity", "checkout-6d5f9c-x2x8p_2a7c"),
        put("spec.leaseTransitions", 6),
        put("metadata.managedFields[0].time", "2025-11-20T12:00:04Z"),
    ),
    old=make_lease(),
)
RENEWAL = make_review(new=make_lease(put("spec.renewTime", "2025-11-20T12:00:05.000000Z")), old=make_lease())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `check` in an empty directory; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def check(*args: str) -> tuple[int, str, str]:
        code = main(["check", *args])
        return code, *capsys.readouterr()

    return check
