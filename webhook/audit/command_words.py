"""Names in commands that a person is advised to run: anyone may have chosen them, so each is one word for a shell."""

import re
import shlex
from typing import Final

from webhook.api.text import escape, truncate

_LONGEST: Final = 253
NO_NAME: Final = "NAME"
_PLACES: Final = re.compile(r"\{(kubectl|name)\}")


def quoted(text: str) -> str:
    """A text within a word that begins otherwise, such as `--as=TEXT`, whatever is in it."""
    return shlex.quote(escape(truncate(text, _LONGEST)))


def word(text: str) -> str:
    """A name as one word of a command, whatever is in it; `NAME` if kubectl would take it for an option."""
    return NO_NAME if text.startswith("-") else quoted(text)


def certs(directory: object) -> str:
    """`lease-webhook certs DIRECTORY`; the path is not cut, because a part of it would be another path."""
    return f"lease-webhook certs {shlex.quote(escape(str(directory)))}"


def kubectl(namespace: str) -> str:
    """`kubectl -n shop`."""
    return f"kubectl -n {word(namespace)}"


def filled(fix: str, namespace: str, name: str) -> str:
    """Return a command with `{kubectl}` (and its namespace) and `{name}` filled in."""
    if "{" not in fix:
        return fix
    names = {"kubectl": kubectl(namespace), "name": word(name)}
    # In one pass: a name may contain what stands for another one.
    return _PLACES.sub(lambda place: names[place[1]], fix)
