"""What a command found, as plain data from which every format is written; and names in the commands that it advises.

Anyone may have chosen a name, so each is one word for a shell.
"""

import re
import shlex
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.text.quoting import escape, truncate

_MAX_WORD: Final = 253
_PLACES: Final = re.compile(r"\{(kubectl|name)\}")


class Severity(StrEnum):
    """The severity of a finding: an error is refused or broken, a warning should be looked at, an info can wait."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def is_at_least(self, threshold: "Severity") -> bool:
        """True if it is this severe or worse."""
        return ORDER[self] <= ORDER[threshold]


ORDER: Final = {one: number for number, one in enumerate(Severity)}  # the worst first


class ObjectName(Struct, frozen=True, gc=False):
    """The kind, namespace and name of an object; "" for what is not known or does not apply."""

    kind: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Finding(Struct, frozen=True, gc=False):
    """Something that is wrong, as every command but the webhook itself reports it.

    `check` is a kebab-case id, on which other programs may match. `message` says what is wrong, `fix` what to change or
    to run. `place` is where it is: a field path with its value, or the input that the subject was read from.
    `identity` is the holder of a lease. `how` says what dates it, if that is not an API server.
    """

    check: str
    severity: Severity
    message: str
    fix: str = ""
    place: str = ""
    subject: ObjectName = ObjectName()
    identity: str = ""
    how: str = ""


def quote_for_shell(text: str) -> str:
    """Return a text quoted for a shell, as the end of a word such as `--as=TEXT`."""
    return shlex.quote(escape(truncate(text, _MAX_WORD)))


def word(text: str) -> str:
    """Return a name as one word of a command; `NAME` if kubectl would take it for an option."""
    return "NAME" if text.startswith("-") else quote_for_shell(text)


def certs_command(directory: object) -> str:
    """`lease-webhook certs DIRECTORY`; the path is not cut, because a part of it would be another path."""
    return f"lease-webhook certs {shlex.quote(escape(str(directory)))}"


def kubectl(namespace: str) -> str:
    """`kubectl -n shop`."""
    return f"kubectl -n {word(namespace)}"


def fill_in(fix: str, namespace: str, name: str) -> str:
    """Return a command with `{kubectl}` (and its namespace) and `{name}` filled in."""
    if "{" not in fix:
        return fix
    names = {"kubectl": kubectl(namespace), "name": word(name)}
    # In one pass: a name may contain what stands for another one.
    return _PLACES.sub(lambda place: names[place[1]], fix)
