"""The calls of a page: a name with arguments as JSON, answered by JSON.

The answer is {"result": ...}, {"error": one line}, or {"problem": {line, path, problem}} for a policy that is refused.
A bug is an error, too, with the name that the commands give it.
"""

import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, Final

import click
import msgspec

from webhook.admission.policy.file import DEFAULT_PRESET
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.browser import reviewing
from webhook.browser.budget import ignore_progress
from webhook.browser.session import Session
from webhook.cli.options import parse_moment
from webhook.cli.rules import list_all_rules, make_rule_json
from webhook.errors import InputError
from webhook.text.quoting import escape


class Page:
    """The state of one page: the files that are open."""

    def __init__(self, progress: Callable[[int, int], None] = ignore_progress) -> None:
        self._progress = progress
        self._session = Session(())

    def open(self, paths: Sequence[str]) -> dict[str, Any]:
        """Take other files, and return what `why` lists of them."""
        self._session = Session(paths, self._progress)
        return self._session.list_leases()

    def account(self, lease: str) -> dict[str, Any]:
        """Return what `why` says of one lease."""
        return self._session.explain_lease(lease)

    def audit(self) -> dict[str, Any]:
        """Return what `audit` finds."""
        return self._session.audit()

    def timeline(self) -> dict[str, Any]:
        """Return the page of `timeline`."""
        return self._session.draw_timeline()

    def check(self, policy: str, *, all_logs: bool = False) -> dict[str, Any]:
        """Return what a policy file denies in the open files."""
        return self._session.check(parse(policy), all_logs=all_logs)

    def review(
        self, text: str, policy: str, old: str = "", user: str = "", groups: Sequence[str] = (), now: str = ""
    ) -> list[dict[str, Any]]:
        """Return what a policy file says of a review or a manifest; `now` is an RFC 3339 time, "" for its own."""
        at = parse_moment(now) if now else None
        return reviewing.review(text, policy, old=old, user=user, groups=groups, now=at)

    def rule(self, name: str) -> dict[str, Any]:
        """Return a rule with its texts; raises KeyError for one that no verdict names."""
        return make_rule_json(list_all_rules()[name])

    def start(self) -> dict[str, Any]:
        """Return what does not depend on any file."""
        schema = resources.files("webhook.admission.policy").joinpath("policy.schema.json").read_bytes()
        return {
            "presets": reviewing.make_preset_files(),
            "default": DEFAULT_PRESET,
            "schema": msgspec.json.decode(schema),
            "rules": {rule.id: rule.summary for rule in list_all_rules().values()},
        }


_FULL: Final = "the memory of this page is full; the command reads any size: lease-webhook why --input FILE"
RAW: Final = frozenset({"html", "kubectl", "lease", "leases", "presets", "response", "review", "schema"})
"""Members that a page passes on as they are: documents, and names by which it asks again. All other text is shown."""
CALLS: Final = ("start", "open", "account", "audit", "timeline", "check", "review", "rule")
"""The methods of a page that may be called."""
_calls: Final = msgspec.json.Decoder(dict[str, Any])


def answer(page: Page, name: str, arguments: str) -> str:
    """Return the answer to one call as JSON; never raises."""
    # Names may have lone surrogates, which JSON in UTF-8 cannot carry.
    return json.dumps(_call(page, name, arguments))


def _call(page: Page, name: str, arguments: str) -> dict[str, Any]:
    try:
        if name not in CALLS:
            return {"error": f"there is no call {escape(name)}"}
        return {"result": _escape_texts(getattr(page, name)(**_calls.decode(arguments)))}
    except PolicyError as refused:
        return {"problem": {"line": refused.line, "path": escape(refused.path), "problem": escape(refused.problem)}}
    except (InputError, click.ClickException) as problem:
        text = problem.format_message() if isinstance(problem, click.ClickException) else str(problem)
        return {"error": escape(" ".join(text.split()))}
    except MemoryError:
        return {"error": _FULL}
    except Exception as bug:  # noqa: BLE001 - the page shows it; nothing else would
        return {"error": escape(f"this is a bug: {type(bug).__name__}: {' '.join(str(bug).split())}")}


def _escape_texts(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value whose texts show what would be hidden, as every command prints them."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {key: one if key in RAW else _escape_texts(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_escape_texts(one) for one in value]
    return _escape_texts(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else value
