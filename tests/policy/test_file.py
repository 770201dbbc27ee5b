"""Policy files as the server reads them: missing, edited, swapped, broken, repaired."""

import gzip
from pathlib import Path

import pytest

from webhook.admission.policy.file import LARGEST, PolicyFile, PolicyFileError, load
from webhook.admission.policy.parse import parse
from webhook.admission.rules.mode import Mode

DATA = Path(__file__).parents[1] / "data" / "policies"
HEAD = "apiVersion: lease-webhook/v1\n"
GOOD = HEAD + "mode: warn\n"
OTHER = HEAD + "mode: audit\n"
BAD = HEAD + "mode: dney\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    return path


def settle(policy_file: PolicyFile) -> str | None:
    """Poll twice, which is what a change in place takes."""
    first = policy_file.poll()
    assert first is None
    return policy_file.poll()


def assert_reloaded(policy_file: PolicyFile, result: str | None, text: str, error: str = "") -> None:
    """The policy of this text is in use, and the file is refused for this reason, if any."""
    assert result == ("failure" if error else "success")
    assert (policy_file.current.digest, policy_file.error) == (parse(text).digest, error)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        pytest.param(None, "standard", id="none: standard"),
        pytest.param("observe", "observe", id="a preset"),
        pytest.param(str(DATA / "shop.yaml"), "strict", id="a file"),
    ],
)
def test_a_name_or_a_file_is_loaded(name: str | None, preset: str) -> None:
    assert load(name).preset == preset
    assert PolicyFile(name).current.preset == preset


def test_a_file_with_a_byte_order_mark(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8-sig")
    assert load(str(file)).mode is Mode.WARN


def test_a_file_may_have_the_name_of_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "strict").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    assert (load("strict").preset, load("./strict").preset) == ("strict", "standard")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(BAD.encode(), 'line 2: mode: "dney" is not known; did you mean "deny"?', id="refused"),
        pytest.param(b"", "the file is empty; a policy begins with apiVersion: lease-webhook/v1", id="empty"),
        pytest.param(gzip.compress(GOOD.encode()), "compressed by gzip; a policy is plain YAML", id="gzip"),
        pytest.param(GOOD.encode() + b"# \xff", "not UTF-8: byte 42 of the file", id="not UTF-8"),
        pytest.param(b" " * (LARGEST + 1), "the file is larger than 4194304 characters", id="large"),
    ],
)
def test_a_bad_file_is_refused_at_start(file: Path, content: bytes, words: str) -> None:
    file.write_bytes(content)
    for start in (load, PolicyFile):
        with pytest.raises(PolicyFileError) as caught:
            start(str(file))
        assert str(caught.value) == f"{file}: {words}"


def test_what_is_not_a_file_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for name, words in (("missing", "No such file or directory"), (".", "not a file"), ("circle", "(?i)symbolic link")):
        with pytest.raises(PolicyFileError, match=words):
            PolicyFile(str(tmp_path / name))


def test_a_mistyped_preset_gets_a_hint() -> None:
    with pytest.raises(PolicyFileError) as caught:
        load("strickt")
    assert str(caught.value) == 'strickt: No such file or directory, and no preset; did you mean "strict"?'
    with pytest.raises(PolicyFileError) as caught:
        load("mine.yaml")
    assert str(caught.value) == (
        "mine.yaml: No such file or directory, and no preset; known are observe, standard, strict"
    )
    with pytest.raises(PolicyFileError) as caught:
        load("policies/strickt")
    assert str(caught.value) == "policies/strickt: No such file or directory"


def test_a_preset_never_changes() -> None:
    assert PolicyFile("strict").poll() is None


def test_nothing_new(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    before = policy_file.current
    file.touch()
    assert settle(policy_file) is None
    assert policy_file.current is before


def test_an_edit_in_place_counts_when_two_reads_agree(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    file.write_text(OTHER)
    assert_reloaded(policy_file, settle(policy_file), OTHER)
    assert policy_file.current.mode is Mode.AUDIT
    assert policy_file.poll() is None


def test_a_file_that_is_being_written_is_not_used_early(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    file.write_text(HEAD)
    assert policy_file.poll() is None
    file.write_text(OTHER)
    assert policy_file.poll() is None
    assert policy_file.current.mode is Mode.WARN
    assert_reloaded(policy_file, policy_file.poll(), OTHER)


def test_a_replaced_file_counts(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    new = file.with_suffix(".new")
    new.write_text(OTHER)
    new.replace(file)
    assert_reloaded(policy_file, settle(policy_file), OTHER)


def mount(folder: Path, version: str, text: str) -> None:
    """Publish a version as the kubelet publishes a ConfigMap: a new directory, then `..data` swapped to it."""
    (folder / version).mkdir()
    (folder / version / "policy.yaml").write_text(text)
    (folder / "..tmp").symlink_to(version)
    (folder / "..tmp").replace(folder / "..data")


def test_a_swapped_config_map_counts_at_once(tmp_path: Path) -> None:
    mount(tmp_path, "..1", GOOD)
    path = tmp_path / "policy.yaml"
    path.symlink_to("..data/policy.yaml")
    policy_file = PolicyFile(str(path))
    mount(tmp_path, "..2", OTHER)
    assert_reloaded(policy_file, policy_file.poll(), OTHER)
    assert policy_file.poll() is None
    mount(tmp_path, "..3", BAD)
    refused = f'{path}: line 2: mode: "dney" is not known; did you mean "deny"?'
    assert_reloaded(policy_file, policy_file.poll(), OTHER, refused)
    mount(tmp_path, "..4", OTHER)
    assert_reloaded(policy_file, policy_file.poll(), OTHER)


def test_a_bad_edit_keeps_the_last_good_policy_and_is_reported_once(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    file.write_text(BAD)
    refused = f'{file}: line 2: mode: "dney" is not known; did you mean "deny"?'
    assert_reloaded(policy_file, settle(policy_file), GOOD, refused)
    assert settle(policy_file) is None
    assert policy_file.error


@pytest.mark.parametrize(
    "repaired", [pytest.param(GOOD, id="back to what it was"), pytest.param(OTHER, id="another text")]
)
def test_a_repaired_file_counts_and_clears_the_error(file: Path, repaired: str) -> None:
    policy_file = PolicyFile(str(file))
    file.write_text(BAD)
    settle(policy_file)
    file.write_text(repaired)
    assert_reloaded(policy_file, settle(policy_file), repaired)
    assert policy_file.error == ""


def test_a_file_that_goes_and_comes_back(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    file.unlink()
    assert_reloaded(policy_file, settle(policy_file), GOOD, f"{file}: No such file or directory")
    file.write_text(GOOD)
    assert_reloaded(policy_file, policy_file.poll(), GOOD)
    assert policy_file.error == ""


def test_a_file_that_becomes_a_directory(file: Path) -> None:
    policy_file = PolicyFile(str(file))
    file.unlink()
    file.mkdir()
    assert_reloaded(policy_file, settle(policy_file), GOOD, f"{file}: not a file")


@pytest.mark.parametrize(
    ("written", "used"),
    [
        pytest.param("", "https://docs.example.com/rules/", id="a file without an address"),
        pytest.param("docs_url: https://other.example.com\n", "https://other.example.com", id="a file with one"),
    ],
)
def test_an_address_is_given_to_a_policy_that_has_none(written: str, used: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"apiVersion: lease-webhook/v1\n{written}")
    policy_file = PolicyFile(str(path), "https://docs.example.com/rules/")
    assert policy_file.current.docs_url == used
    assert policy_file.current.digest == load(str(path)).digest
    path.write_text(f"apiVersion: lease-webhook/v1\npreset: strict\n{written}")
    assert [policy_file.poll(), policy_file.poll()] == [None, "success"]
    assert (policy_file.current.preset, policy_file.current.docs_url) == ("strict", used)


def test_an_address_is_given_to_a_preset() -> None:
    assert PolicyFile("strict", "https://docs.example.com").current.docs_url == "https://docs.example.com"
