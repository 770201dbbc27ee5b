"""A fencing token without stamps: the resourceVersion at which this process was seen to hold the lease."""


class NotLeadingError(Exception):
    """Another process holds the lease, or no one does."""


def revision(lease: dict, identity: str) -> str:
    """Return the token of this process, 18 digits. `lease` is the Lease as JSON, read after the elector says it leads.

    `identity` is the holder identity of this process, which no other process may ever use. Read it once, and send it
    with every write until the elector says otherwise. Never read it again for a write.
    """
    holder = lease["spec"].get("holderIdentity")
    if not identity or holder != identity:
        raise NotLeadingError(f"the lease is held by [{holder}]")
    version = lease["metadata"]["resourceVersion"]
    if not (version.isascii() and version.isdecimal() and len(version) <= 18):
        raise NotLeadingError(f"not a version that can be compared: {version!r}")
    return f"{int(version):018}"
