"""Who may hold a lease: identity bindings, the globs of their templates, and names of pods in holder identities.

Globs have one meaning everywhere: `*` is any run of characters, `?` is one, everything else is itself. A glob covers
the whole text, upper and lower case differ, and `[` is not a class. Matching is never exponential, which matters
because clients choose holder identities, and one may have a megabyte. That an identity looks like its writer is a hint,
because the string does not authenticate.
"""

import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Final

from msgspec import Struct

from webhook.kubernetes.formats import MAX_NAME
from webhook.kubernetes.request import MAX_REQUEST, UserInfo

POD: Final = "${pod}"
"""In a holder template, the pod name of the writer's token."""


class Binding(Struct, frozen=True):
    """Writers and holder templates of one lease.

    `service_accounts` are (namespace, name) pairs, `users` are user names; `holders` are globs in which `${pod}`
    stands for the pod name of the writer's token. Without a pod name a template with `${pod}` cannot be checked:
    that is a warning, or a denial if `require_pod` is set.
    """

    service_accounts: frozenset[tuple[str, str]] = frozenset()
    users: frozenset[str] = frozenset()
    holders: tuple[str, ...] = ()
    require_pod: bool = False

    def lists(self, user: UserInfo) -> bool:
        """True if the user is one of the writers."""
        return user.username in self.users or user.service_account in self.service_accounts


MAX_HOSTNAME: Final = 63
"""The kubelet cuts a pod's host name to this, and then `-` and `.` at its end (truncatePodHostnameIfNeeded in
pkg/kubelet/kubelet_pods.go); clients build identities from the host name."""


def make_host_name(pod: str) -> str:
    """Return the host name of a pod of this name."""
    return pod if len(pod) <= MAX_HOSTNAME else pod[:MAX_HOSTNAME].rstrip("-.")


def fits_pod(holder: str, pod: str) -> bool:
    """True if the holder is the pod's name or host name, alone or followed by something that ends the name."""
    return _begins_with(holder, pod) or (len(pod) > MAX_HOSTNAME and _begins_with(holder, make_host_name(pod)))


def names_pod(holder: str, pod: str) -> bool:
    """True if the holder fits the pod and no other pod whose name begins with this one's.

    `checkout-0_8c1` fits a pod `checkout`, but names `checkout-0`. A uuid after `-` or `.` is not a part of a name.
    """
    return any(
        _begins_with(holder, name) and not _LONGER_NAME.match(holder, len(name)) for name in (pod, make_host_name(pod))
    )


_LONGER_NAME: Final = re.compile(r"[-.]++(?![0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z)[0-9a-z]")


def _begins_with(holder: str, name: str) -> bool:
    if not holder.startswith(name):
        return False
    rest = holder[len(name) :]
    return not rest or not (rest[0].isascii() and rest[0].isalnum())


WILDCARDS: Final = "*?"


def is_literal(pattern: str) -> bool:
    """True if the glob can match one text only, itself."""
    return not any(wildcard in pattern for wildcard in WILDCARDS)


def matches(pattern: str, text: str) -> bool:
    """True if the glob covers the whole text."""
    return fnmatchcase(text, _escape_classes(pattern))


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the glob as a pattern that matches what it covers."""
    return re.compile(translate(_escape_classes(pattern)))


def holder_matches(template: str, holder: str, pod: str) -> bool:
    """True if a holder template of a binding covers the holder.

    `${pod}` stands for exactly the pod's name, or its host name; a template that has it covers nothing if the name is
    not known ("") or longer than a pod's can be, and no holder that is longer than a write.
    Only the template, which a person wrote, becomes a pattern: the name is matched as text.
    """
    if POD not in template:
        return matches(template, holder)
    if not pod or len(pod) > MAX_NAME or _END in pod or len(holder) > MAX_REQUEST:
        return False
    pattern = _pattern(template)
    return any(pattern.match(f"{name}{_END}{holder}") for name in {pod, make_host_name(pod)})


_END: Final = "\0"
"""Between the pod's name and the holder; no name has it, and a policy file cannot."""


@lru_cache(maxsize=256)
def _pattern(template: str) -> re.Pattern[str]:
    glob = translate(_escape_classes(template).replace(POD, _END))
    return re.compile(f"(?P<pod>[^{_END}]*+){_END}{glob.replace(re.escape(_END), '(?P=pod)')}")


def _escape_classes(pattern: str) -> str:
    return pattern.replace("[", "[[]")
