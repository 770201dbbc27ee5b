"""Who writes: `request.userInfo`, as the API server's authenticator filled it in."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.bulk import LARGEST_REQUEST
from webhook.api.formats import LONGEST_NAME

NO_USER: Final = Raw(b"null")


class UserInfo(Struct, frozen=True, gc=False):
    """Who writes, as the authenticator says."""

    username: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    @property
    def pod_name(self) -> str:
        """The pod that the writer's token is bound to, or "" if there is none; a longer text is ignored."""
        names = self.extra.get("authentication.kubernetes.io/pod-name")
        return names[0] if names and len(names[0]) <= LONGEST_NAME else ""

    @property
    def service_account(self) -> tuple[str, str] | None:
        """(namespace, name) of a service account, else None."""
        prefix, _, rest = self.username.partition("system:serviceaccount:")
        namespace, colon, name = rest.partition(":")
        return (namespace, name) if not prefix and colon else None


class _Nullable(Struct, frozen=True, gc=False):
    username: str | None = None
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...] | None] | None = None


_usual: Final[msgspec.json.Decoder[UserInfo | None]] = msgspec.json.Decoder(UserInfo | None)
_nullable: Final = msgspec.json.Decoder(_Nullable)


def user_of(user_info: Raw) -> UserInfo | None:
    """The writer; None for null and anything unreadable, for which rules about the writer report a finding.

    No authenticator names a writer in more than LARGEST_REQUEST bytes, so that is unreadable as well.
    """
    if memoryview(user_info).nbytes > LARGEST_REQUEST:
        return None
    try:
        return _usual.decode(user_info)
    except msgspec.ValidationError:
        return _with_nulls(user_info)


def _with_nulls(user_info: Raw) -> UserInfo | None:
    try:
        user = _nullable.decode(user_info)
    except msgspec.ValidationError:
        return None
    extra = {key: values or () for key, values in user.extra.items()} if user.extra else {}
    return UserInfo(user.username or "", user.groups or (), extra)
