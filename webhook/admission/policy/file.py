"""A policy from a preset's name or a file, which is polled for changes."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import API_VERSION, PRESETS, PolicyError, suggest_nearest
from webhook.errors import InputError
from webhook.text.yaml_reader import EMPTY

DEFAULT_PRESET: Final = "standard"
_GZIP: Final = b"\x1f\x8b"
LARGEST: Final = 16 * 1024 * 1024
"""Bytes that are read at most: as many characters as the parser accepts, of up to four bytes."""


class PolicyFileError(InputError):
    """A policy file cannot be read or is refused; the text names the file and the reason in one line."""


class _Snapshot(Struct, frozen=True):
    """The file at one moment: the path without symbolic links, and its bytes or why there are none."""

    real_path: str
    content: bytes = b""
    error: str = ""


def load(name_or_path: str | None) -> Policy:
    """Return a preset (`standard` if None), else the policy of a file, such as `./strict`; raises PolicyFileError."""
    return PolicyFile(name_or_path).current


def load_text(content: bytes, name: str) -> Policy:
    """Return the policy of a text without a file, such as standard input; raises PolicyFileError with its name."""
    return _parse_snapshot(Path(name), _Snapshot("", content))


def make_preset_file(preset: str) -> str:
    """Return the text of a policy file that has a preset and nothing else."""
    return f"apiVersion: {API_VERSION}\npreset: {preset}\n"


class PolicyFile:
    """The policy in use. One thread polls for a newer one; any may read `current`, which is replaced as a whole."""

    def __init__(self, name_or_path: str | None, docs_url: str = "") -> None:
        """Load the policy; raises PolicyFileError. `docs_url` is for a policy that has none."""
        self._docs_url = docs_url
        name = DEFAULT_PRESET if name_or_path is None else name_or_path
        self._path = None if name in PRESETS else Path(name)
        self._used = self._last = _read(self._path) if self._path else _Snapshot("", make_preset_file(name).encode())
        self.current = self._add_docs_url(_parse_snapshot(self._path or Path(name), self._used))
        self.error = ""
        """Why the current file is refused; "" if it is in use."""

    @property
    def text(self) -> str:
        """The file as it was read last, without a byte order mark; of a preset, a file that has the same policy."""
        return self._used.content.decode("utf-8-sig").replace("\r\n", "\n")

    def poll(self) -> str | None:
        """Read the file; "success" or "failure" if it changed, else None. Never raises, whatever happened to the file.

        A symbolic link with another target counts at once: a ConfigMap changes this way, atomically. Any other change
        counts once two reads in a row agree, since an editor may be writing; call this every second or two.
        """
        if self._path is None:
            return None
        snapshot, last = _read(self._path), self._last
        self._last = snapshot
        swapped = snapshot.real_path != last.real_path and not snapshot.error
        if snapshot == self._used or not (swapped or snapshot == last):
            return None
        self._used = snapshot
        try:
            self.current = self._add_docs_url(_parse_snapshot(self._path, snapshot))
            self.error = ""
        except PolicyFileError as error:
            self.error = str(error)
        return "failure" if self.error else "success"

    def _add_docs_url(self, policy: Policy) -> Policy:
        return policy if policy.docs_url or not self._docs_url else replace(policy, docs_url=self._docs_url)


def _read(path: Path) -> _Snapshot:
    real_path = ""
    try:
        # Not Path.resolve, which reports a loop by a RuntimeError before Python 3.13.
        real_path = os.path.realpath(path, strict=True)
        if not Path(real_path).is_file():
            return _Snapshot(real_path, error="not a file")
        with Path(real_path).open("rb") as file:
            return _Snapshot(real_path, file.read(LARGEST + 1))
    except OSError as error:
        return _Snapshot(real_path, error=error.strerror or type(error).__name__)


def _parse_snapshot(path: Path, snapshot: _Snapshot) -> Policy:
    if snapshot.error:
        # Other commands may read the policy more than once.
        if str(path) == "-":
            raise PolicyFileError("-: only `policy check` reads a policy from standard input; name a file")
        # A bare word is more often a mistyped preset than a file.
        no_preset = f", and no preset{suggest_nearest(str(path), PRESETS)}" if path.name == str(path) else ""
        raise PolicyFileError(f"{path}: {snapshot.error}{no_preset}")
    if snapshot.content.startswith(_GZIP):
        raise PolicyFileError(f"{path}: compressed by gzip; a policy is plain YAML")
    try:
        return parse(snapshot.content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{path}: not UTF-8: byte {error.start} of the file") from error
    except PolicyError as error:
        hint = f"; a policy begins with apiVersion: {API_VERSION}" if error.problem == EMPTY else ""
        raise PolicyFileError(f"{path}: {error}{hint}") from error
