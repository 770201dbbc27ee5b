"""Whatever is typed: a command ends with an exit code and never with a traceback."""

import io
from pathlib import Path

import click
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import make_lease, make_review, to_bytes
from webhook.cli.commands import PROGRAM, LazyGroup
from webhook.cli.main import main

HARMLESS = (
    "check",
    "rules",
    "policy",
    "suggest",
    "export",
    "certs",
    "doctor",
    "completion",
)
"""All but `serve`, which does not end, and what others test in their own files."""


def options_of(group: LazyGroup) -> set[str]:
    context = click.Context(group)
    options: set[str] = set()
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        if isinstance(command, LazyGroup):
            options |= options_of(command)
        elif command and name != "serve":
            options |= {option for one in command.params for option in one.opts if option.startswith("-")}
    return options


WORDS = st.one_of(
    st.sampled_from(sorted(options_of(PROGRAM))),
    st.sampled_from(["text", "json", "strict", "standard", "shop/checkout", "1", "0", "-1"]),
    st.sampled_from(["live.yaml", "review.json", "junk", ".", "-", "gone", "", "--"]),
    st.sampled_from(["fence", "check", "show", "schema", "bash", "takeover-before-expiry", "2026-01-31T12:00:00Z"]),
    # What a shell can hand over: of the surrogates only those that stand for bytes that are not UTF-8.
    st.text(st.characters(exclude_characters="\x00/", exclude_categories=["Cs"]) | st.just("\udcff"), max_size=6),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(command=st.sampled_from(HARMLESS), words=st.lists(WORDS, max_size=7), stdin=st.binary(max_size=40))
def test_no_arguments_give_a_traceback(
    command: str,
    words: list[str],
    stdin: bytes,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "live.yaml").write_text(yaml.safe_dump(make_lease()))
    (folder / "junk").write_bytes(b"\x00{[\xff")
    (folder / "review.json").write_bytes(to_bytes(make_review(new=make_lease())))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
    assert main([command, *words]) in {0, 1, 2}
    out, err = capsys.readouterr()
    assert "bug" not in err
    assert "Traceback" not in err + out
    assert len(err.splitlines()) <= 3 or "Usage:" in err
