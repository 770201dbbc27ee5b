"""What a person needs to know about a rule beyond its text: the harm, who trips over it, and the fix."""

from msgspec import Struct


class Guidance(Struct, frozen=True):
    """Sentences of Markdown about one rule; `lease-webhook rules` and docs/rules show them.

    `why` says what happens without the rule, `who` which honest writers meet it, `fix` what they change.
    """

    why: str
    who: str
    fix: str
