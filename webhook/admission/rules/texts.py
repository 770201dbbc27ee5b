"""What people read about a rule: on its page, in a terminal, in the tables of the documents."""

from typing import Final

from msgspec import Struct

NO_TAKEOVER: Final = "no other replica can take the lease, or not for a long time"
"""What several kinds of stored values mean; rules with the same text share a row."""
ABSURD_VALUE: Final = "an absurd or unreadable value"
ANOTHER_CHANGE: Final = "another change in the same write"
"""Reasons of several rules, which share a row."""


class Texts(Struct, frozen=True, kw_only=True):
    """The texts about a rule beside the docstring of its check, in sentences of Markdown.

    `source` is where the rule comes from, or `ours: ` and the reason. `why` says what happens without the rule, `who`
    which honest writers meet it, `fix` what they change. `attack` is what a denied write did, as a phrase, if it looks
    like an attack. `upstream` says whether an API server refuses the same, if that is more than recordings show.
    """

    source: str
    why: str
    fix: str
    who: str = "Manifests written by hand, and templates with an empty value. No known elector."
    attack: str = ""
    upstream: str = ""


class Stored(Struct, frozen=True, kw_only=True):
    """What `audit` says of a stored object that breaks a rule.

    `means` is what that means for the lease, as `docs/audit.md` has it, `fix` how to repair the object, a template of
    `fill_in`.
    """

    means: str
    fix: str


class DeniedRenewal(Struct, frozen=True, kw_only=True):
    """What a rule denies of writes by which a holder stays, for the list in `docs/promises.md`.

    `reason` is what such a write is denied for; rules with the same share a row. `condition` is what else must be so.
    Both are Markdown, with links as from `docs/rules`. In which presets it denies follows from the modes.
    """

    reason: str
    condition: str = ""
