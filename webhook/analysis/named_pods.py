"""The pod that the text of a holder names: anyone may have written that text, and commands have the name in them."""

import re
from typing import Final

_POD: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_UUID_PATTERN: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID: Final = re.compile(_UUID_PATTERN)
_UUID_AT_END: Final = re.compile(rf"[-_]{_UUID_PATTERN}\Z")


def is_pod_name(text: str) -> bool:
    """Return whether a pod may have this name."""
    return _POD.fullmatch(text) is not None


def drop_uuid(text: str) -> str:
    """Return a text without the UUID at its end: one start of the process of a pod, or of a machine."""
    return _UUID_AT_END.sub("", text)


def find_named_pod(holder: str) -> str:
    """Return the pod that a holder names; "" if it is none: some electors use a UUID as their whole identity."""
    name = holder.rpartition("_")[0] or drop_uuid(holder)
    return name if is_pod_name(name) and not _UUID.fullmatch(name) else ""


def guess_named_pod(holder: str) -> str:
    """Return the pod that a holder most likely names; "" if its text is more likely another name.

    No controller names a pod without a hyphen; a dot is in names of machines.
    """
    name = find_named_pod(holder)
    return name if "-" in name and "." not in name else ""
