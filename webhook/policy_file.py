"""Where a policy comes from: a preset's name or a file, watched by looking again, never half-read, never half-used."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.policy.error import PolicyError, nearest
from webhook.policy.model import Policy
from webhook.policy.parse import parse
from webhook.policy.schema_types import API_VERSION, PRESETS

DEFAULT_PRESET: Final = "standard"
LARGEST: Final = 16 * 1024 * 1024
"""Bytes read at most: what the parser takes, in characters of up to four bytes."""


class PolicyFileError(Exception):
    """A policy file cannot be read or is refused; the text names the file and the reason, in one line."""


class Reload(Struct, frozen=True):
    """What looking again found: the policy now in use, and why the file is not it (`error`, "" where it is)."""

    policy: Policy
    error: str = ""


class _Sight(Struct, frozen=True):
    """What one look saw: where the path led, and either bytes or the reason why there are none."""

    real_path: str
    content: bytes = b""
    error: str = ""


def load(name_or_path: str | None) -> Policy:
    """The policy of a preset (`standard` where None), else of a file; `./strict` is a file of that name.

    Raises PolicyFileError: a named file is there and good, or nothing starts.
    """
    if name_or_path is None or name_or_path in PRESETS:
        return parse(f"apiVersion: {API_VERSION}\npreset: {name_or_path or DEFAULT_PRESET}\n")
    path = Path(name_or_path)
    return _parsed(path, _look(path))


class PolicyFile:
    """The policy in use, and `poll` to look for a newer one.

    One thread polls; any thread may read `current`, which is replaced whole, and only by a file that was accepted.
    A preset never changes.
    """

    def __init__(self, name_or_path: str | None) -> None:
        """Load at once; raises PolicyFileError."""
        self._path = None if name_or_path is None or name_or_path in PRESETS else Path(name_or_path)
        self._used = self._last = _look(self._path) if self._path else _Sight("")
        self.current: Policy = _parsed(self._path, self._used) if self._path else load(name_or_path)
        self.error = ""
        """Why the file as it stands now is not in use; "" where it is."""

    def poll(self) -> Reload | None:
        """Look again; None where nothing new counts. Never raises, whatever has become of the file.

        A symbolic link that leads elsewhere counts at once: this is how a ConfigMap changes, whole. Anything else
        counts when two looks in a row agree, since an editor may be in the middle of writing; call this every second
        or two.
        """
        if self._path is None:
            return None
        sight, last = _look(self._path), self._last
        self._last = sight
        swapped = sight.real_path != last.real_path and not sight.error
        if sight == self._used or not (swapped or sight == last):
            return None
        self._used = sight
        try:
            self.current = _parsed(self._path, sight)
            self.error = ""
        except PolicyFileError as error:
            self.error = str(error)
        return Reload(self.current, self.error)


def _look(path: Path) -> _Sight:
    real_path = ""
    try:
        resolved = path.resolve(strict=True)
        real_path = str(resolved)
        if not resolved.is_file():
            return _Sight(real_path, error="not a file")
        with resolved.open("rb") as file:
            return _Sight(real_path, file.read(LARGEST + 1))
    except OSError as error:
        return _Sight(real_path, error=error.strerror or type(error).__name__)
    except RuntimeError:
        # `resolve` says so of a loop before Python 3.13, and with an OSError since.
        return _Sight(real_path, error="a symbolic link that leads to itself")


def _parsed(path: Path, sight: _Sight) -> Policy:
    if sight.error:
        # A bare word was meant as a preset more often than as a file.
        hint = "" if path.suffix or path.name != str(path) else nearest(str(path), PRESETS)
        raise PolicyFileError(f"{path}: {sight.error}{hint and f', and no preset{hint}'}")
    try:
        return parse(sight.content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{path}: not UTF-8: byte {error.start} of the file") from error
    except PolicyError as error:
        raise PolicyFileError(f"{path}: {error}") from error
