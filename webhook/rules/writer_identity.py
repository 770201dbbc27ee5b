"""Whether a holder identity looks like the pod that writes it; a hint, because the string does not authenticate."""

from typing import Final

LONGEST_POD: Final = 253
LONGEST_HOSTNAME: Final = 63
"""A pod's host name is its name cut to 63 characters, and clients build identities from the host name."""


def fits_pod(holder: str, pod: str) -> bool:
    """Whether the holder is the pod's name, whole or cut, alone or followed by something that ends the name."""
    return any(_begins_with(holder, name) for name in (pod, pod[:LONGEST_HOSTNAME]))


def _begins_with(holder: str, name: str) -> bool:
    if not holder.startswith(name):
        return False
    rest = holder[len(name) :]
    return not rest or not (rest[0].isascii() and rest[0].isalnum())
