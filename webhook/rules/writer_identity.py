"""Whether a holder identity looks like the pod that writes it; a hint, because the string does not authenticate."""

from typing import Final

LONGEST_POD: Final = 253
LONGEST_HOSTNAME: Final = 63
"""The kubelet cuts a pod's host name to this, and then `-` and `.` at its end (truncatePodHostnameIfNeeded in
pkg/kubelet/kubelet_pods.go); clients build identities from the host name."""


def host_name(pod: str) -> str:
    """The host name of a pod of this name."""
    return pod if len(pod) <= LONGEST_HOSTNAME else pod[:LONGEST_HOSTNAME].rstrip("-.")


def fits_pod(holder: str, pod: str) -> bool:
    """Whether the holder is the pod's name or host name, alone or followed by something that ends the name."""
    return any(_begins_with(holder, name) for name in (pod, host_name(pod)))


def _begins_with(holder: str, name: str) -> bool:
    if not holder.startswith(name):
        return False
    rest = holder[len(name) :]
    return not rest or not (rest[0].isascii() and rest[0].isalnum())
