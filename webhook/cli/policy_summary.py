"""A policy summarized, in one line or as the first keys of a JSON object."""

from typing import Any

from webhook.api.text import escape
from webhook.policy.model import Policy
from webhook.rules.mode import Mode


def summary(policy: Policy) -> str:
    """Preset, hash, cap and whatever else applies to every lease."""
    cap = "everything allowed (mode: off)" if policy.mode is Mode.OFF else f"mode {policy.mode.word}"
    docs = f", docs_url {escape(policy.docs_url)}" if policy.docs_url else ""
    return f"preset {policy.preset}, hash {policy.digest}, {cap}, without_stamps {policy.document.without_stamps}{docs}"


def head(policy: Policy) -> dict[str, Any]:
    """The same for programs."""
    return {
        "preset": policy.preset,
        "hash": policy.digest,
        "mode": policy.mode.word,
        "without_stamps": policy.document.without_stamps,
        "docs_url": policy.docs_url,
    }
