"""The term of a lease: a number that a store outside Kubernetes can compare. Needs docs/stamp.md on the lease."""


class NotLeadingError(Exception):
    """Another pod wrote the lease last, so the term is not that of this one."""


def term(lease: dict, suffix: str, pod_uid: str) -> str:
    """Return the term of this pod, 18 digits. `lease` is the Lease as JSON, `pod_uid` metadata.uid of the downward API.

    Read it once, after the elector says that this pod leads, and send it with every write until it says otherwise.
    Never read it again for a write: whoever leads then may be another pod.
    """
    metadata = lease["metadata"]
    annotations = metadata.get("annotations") or {}
    writer = annotations.get(f"lease-webhook/writer-{suffix}", "")
    if writer.partition(" ")[0] != pod_uid or not lease["spec"].get("holderIdentity"):
        raise NotLeadingError(f"the lease was written by [{writer}]")
    # A lease that was created and not renewed yet has no term; its first renewal stamps this same number.
    found = annotations.get(f"lease-webhook/term-{suffix}") or int(metadata["resourceVersion"]) - 1
    return f"{int(found):018}"
