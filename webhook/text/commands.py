"""Commands that people copy into a shell, with names and paths that anyone may have chosen: each is one word there."""

import re
import shlex
from typing import Final

from webhook.text.quoting import escape, truncate

_MAX_WORD: Final = 253
_PLACES: Final = re.compile(r"\{(kubectl|name)\}")
_COMMAND: Final = re.compile(r"(^|: )(?=(?:kubectl|lease-webhook) )")


def quote_for_shell(text: str) -> str:
    """Return a text quoted for a shell, as the end of a word such as `--as=TEXT`."""
    return shlex.quote(escape(truncate(text, _MAX_WORD)))


def quote_name(name: str) -> str:
    """Return a name as one word of a command; `NAME` if kubectl would take it for an option."""
    return "NAME" if name.startswith("-") else quote_for_shell(name)


def quote_path(path: object) -> str:
    """Return a path as one word of a command; it is not cut, because a part of it would be another path."""
    return shlex.quote(escape(str(path)))


def make_certs_command(directory: object) -> str:
    """`lease-webhook certs DIRECTORY`."""
    return f"lease-webhook certs {quote_path(directory)}"


def make_kubectl_prefix(namespace: str) -> str:
    """`kubectl -n shop`."""
    return f"kubectl -n {quote_name(namespace)}"


def fill_in(command: str, namespace: str, name: str) -> str:
    """Return a command with `{kubectl}` (and its namespace) and `{name}` filled in."""
    if "{" not in command:
        return command
    names = {"kubectl": make_kubectl_prefix(namespace), "name": quote_name(name)}
    # In one pass: a name may contain what stands for another one.
    return _PLACES.sub(lambda place: names[place[1]], command)


def split_fix(fix: str) -> tuple[str, str]:
    """Return what a fix says in words, and the command that it is or ends with; each "" if it has none."""
    found = _COMMAND.search(fix)
    return (fix, "") if found is None else (fix[: found.start()], fix[found.end() :])
