"""Every command on every recorded input, as words of a command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]
DATA: Final = Path("tests/data")
NOW: Final = "2026-11-22T12:00:00Z"
PRESETS: Final = ("observe", "standard", "strict")
COMMANDS: Final = (
    "serve", "check", "rules", "policy", "suggest", "export", "install",
    "certs", "audit", "why", "timeline", "record", "doctor", "completion",
)  # fmt: skip


class Invocation(Struct, frozen=True):
    """Words after `lease-webhook`, and a file for standard input."""

    words: tuple[str, ...]
    stdin: Path | None = None

    @property
    def text(self) -> str:
        """Words as one line, which names the output."""
        return " ".join(self.words) + (f" < {self.stdin}" if self.stdin else "")


def list_invocations() -> Iterator[Invocation]:
    """Yield each command once; paths are relative to the repository."""
    for words in _list_all_words():
        yield Invocation(tuple(str(word) for word in words))
    for file in (DATA / "leases").glob("*"):
        if file.suffix in {".yaml", ".json"}:
            yield Invocation(("check", "-", "--now", NOW), file)
            yield Invocation(("why", "--input", "-", "--now", NOW), file)


def _list_all_words() -> Iterator[tuple[object, ...]]:
    yield ("--help",)
    yield from ((command, "--help") for command in COMMANDS)
    yield from _list_rule_commands()
    yield from _list_history_commands()
    yield from _list_file_commands()
    yield from _list_review_commands()
    yield from _list_configuration_commands()


def list_policy_files() -> list[Path]:
    """Return the files that are passed to the commands about policies; some of them do not hold a policy."""
    return [*_list_files(DATA / "policies"), *_list_files("docs/examples", "*.yaml")]


def _list_rule_commands() -> Iterator[tuple[object, ...]]:
    yield ("rules",)
    yield ("rules", "--format", "json")
    for page in _list_files("docs/rules", "*.md"):
        yield ("rules", page.stem)
    yield ("policy", "schema")
    for policy in list_policy_files():
        yield ("policy", "check", policy)
        yield ("policy", "check", policy, "--format", "json")
        yield ("policy", "show", policy)
        yield ("policy", "show", policy, "shop/checkout")
        yield ("export", "fence", policy)
    for preset in PRESETS:
        yield ("policy", "show", preset)
        yield ("policy", "show", preset, "kube-node-lease/worker-1", "--format", "json")


def _list_histories() -> list[Path]:
    return [*_list_files(DATA / "incidents", "*/audit.log.gz"), *_list_files(DATA / "incidents", "*/leases.json.gz"),
            *_list_files("webhook/cli/example", "*.gz"), *_list_files(DATA / "fence", "*.gz")]  # fmt: skip


def _list_history_commands() -> Iterator[tuple[object, ...]]:
    for file in _list_histories():
        yield from _list_commands_of_history(file)
    for folder in sorted((DATA / "incidents").iterdir()):
        if folder.is_dir():
            both = ("--input", folder / "audit.log.gz", "--input", folder / "leases.json.gz")
            yield ("why", *both)
            yield ("why", "--input", folder / "leases.json.gz", "--input", folder / "audit.log.gz", "--format", "json")
            yield ("audit", *both, "--now", NOW)
            yield ("timeline", *both, "--format", "json", "-o", "-")
    yield ("timeline", "--example", "--format", "json", "-o", "-")


def _list_commands_of_history(file: Path) -> Iterator[tuple[object, ...]]:
    yield ("why", "--input", file)
    yield ("why", "--input", file, "--format", "json")
    truth = file.parent / "truth.json"
    if truth.exists():
        yield ("why", "--input", file, "--now", NOW, "--format", "json")
        for lease in _list_leases(truth):
            yield ("why", lease, "--input", file)
            yield ("timeline", lease, "--input", file, "--format", "json", "-o", "-")
    yield ("timeline", "--input", file, "--format", "json", "-o", "-")
    yield ("audit", "--input", file, "--now", NOW)
    yield ("audit", "--input", file, "--now", NOW, "--format", "json")
    yield ("suggest", "bindings", "--input", file)


def _list_leases(truth: Path) -> Iterator[str]:
    import json  # noqa: PLC0415 - used here alone

    content = json.loads(truth.read_text())
    if "namespace" in content and "name" in content:
        yield f"{content['namespace']}/{content['name']}"


def _list_file_commands() -> Iterator[tuple[object, ...]]:
    for folder in ("leases", "manifests", "reviews"):
        for file in _list_files(DATA / folder):
            yield ("check", file, "--now", NOW)
            yield ("check", file, "--now", NOW, "--policy", "strict", "--format", "json")
            yield ("audit", "--input", file, "--now", NOW)
            yield ("why", "--input", file, "--now", NOW)
            yield ("suggest", "bindings", "--input", file)
        for form in ("text", "json"):
            yield ("check", DATA / folder, "--now", NOW, "--format", form)
            yield ("audit", "--input", DATA / folder, "--now", NOW, "--format", form)
    for file in _list_files("docs/examples"):
        yield ("check", file, "--now", NOW)
        yield ("check", file, "--now", NOW, "--format", "json", "--user", "system:serviceaccount:shop:checkout")
        yield ("audit", "--input", file, "--now", NOW)
    yield ("check", "docs/examples/taken-lease.yaml", "--old", "docs/examples/live-lease.yaml", "--now", NOW)
    for broken in ("no-such-file.yaml", DATA / "transport", "LICENSE", "tests/data/README.md"):
        yield ("check", broken)
        yield ("audit", "--input", broken)
        yield ("why", "--input", broken)
        yield ("timeline", "--input", broken, "-o", "-")


def _list_review_commands() -> Iterator[tuple[object, ...]]:
    folders = sorted(path for path in (DATA / "recordings").glob("*/*") if path.is_dir())
    for folder in folders:
        for preset in PRESETS:
            yield ("check", folder, "--policy", preset, "--format", "json")
        yield ("check", folder, "--format", "json")
        yield ("why", "--input", folder, "--format", "json", "--now", NOW)
        yield ("suggest", "bindings", "--input", folder)
        yield ("timeline", "--input", folder, "--format", "json", "-o", "-")
        yield ("audit", "--input", folder, "--now", NOW, "--format", "json")
    yield ("check", DATA / "recordings", "--against", "strict")
    yield ("check", DATA / "recordings", "--format", "text")
    for file in _list_files(DATA / "attacks", "*.strict.jsonl.gz"):
        yield ("check", file, "--format", "json", "--policy", "strict")
        yield ("why", "--input", file, "--format", "json", "--now", NOW)


def _list_configuration_commands() -> Iterator[tuple[object, ...]]:
    for file in [*_list_files(DATA / "doctor"), *_list_files("deploy/base"), *_list_files("deploy/static-manifests")]:
        yield ("doctor", "--input", file)
        yield ("doctor", "--input", file, "--format", "json")
        yield ("doctor", "--input", file, "--policy", "strict")
    for certificate in ("cert-manager", "openshift"):
        yield ("install", "--certificate", certificate, "--image", "registry.example/lease-webhook:0.2.0")
    yield ("install",)
    yield ("install", "--certificate", "cert-manager")
    yield ("install", "--policies-only", "--policy", "strict")
    yield ("install", "--policies-only", "--kubernetes", "1.29")
    yield ("install", "--policies-only", "--component", "strict")
    for file in _list_files(DATA / "fence"):
        yield ("suggest", "fence", "--input", file)


def _list_files(folder: Path | str, pattern: str = "*") -> list[Path]:
    return sorted(path for path in Path(folder).glob(pattern) if path.is_file() and path.name != "README.md")
