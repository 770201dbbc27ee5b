"""`lease-webhook make-review`: a complete AdmissionReview, made of manifests and a user."""

import hashlib
import json
import time
import uuid
from typing import Final

import click

from webhook.api.request import KIND_OF
from webhook.api.times import canonical_seconds
from webhook.cli.manifest import Writer, key_of, request_of, review, stamped
from webhook.cli.options import Command, files, moment
from webhook.cli.terminal import Failure
from webhook.inputs.documents import Value
from webhook.inputs.files import submitted
from webhook.inputs.items import Unreadable
from webhook.inputs.kinds import Manifest

_DESCRIPTION: Final = """\
Prints the AdmissionReview that an API server would send for a write: the creation of NEW, with --old an update to NEW,
and with --delete the deletion of NEW. Keep it for `test` and `replay`, or send it to a webhook with curl.

What an API server fills in is filled in if it is missing: uid, resourceVersion, creationTimestamp. managedFields are
taken from the manifests: get live objects with --show-managed-fields. --stamp generates missing ones: the
stored object was written at its renewTime, the new one at --now.
"""
_EPILOG: Final = """\
Example:
  lease-webhook make-review new.yaml --old live.yaml --user system:serviceaccount:shop:checkout
"""


@click.command("make-review", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("new", metavar="NEW", shell_complete=files)
@click.option("--old", metavar="PATH", help="what is stored now", shell_complete=files)
@click.option("--delete", is_flag=True, help="the write deletes the object")
@click.option("--user", default="kubernetes-admin", metavar="NAME", help="who writes (default: kubernetes-admin)")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--dry-run", is_flag=True, help="as kubectl's --dry-run=server sends it")
@click.option("--stamp", is_flag=True, help="generate managedFields if there are none")
@click.option("--now", metavar="RFC3339", help="the time of the write (default: now)")
def command(
    *,
    new: str,
    old: str | None,
    delete: bool,
    user: str,
    groups: tuple[str, ...],
    dry_run: bool,
    stamp: bool,
    now: str | None,
) -> int:
    """Print the review; raises Failure."""
    if delete and old:
        raise Failure("--delete deletes NEW: there is no --old")
    at = moment(now) if now else time.time_ns() // 1000
    document = _only(new)
    before = _only(old) if old else document if delete else None
    if before and key_of(before) != key_of(document):
        raise Failure(f"{old} is another object: {_name(before)}, not {_name(document)}")
    if stamp:
        document = document if delete else stamped(document, at)
        before = before and stamped(before)
    after = None if delete else document if old else _filled(document, at)
    request = request_of(after, _filled(before, at) if before else None, Writer(user, groups))
    print(json.dumps(review(_complete(request, dry_run=dry_run)), indent=2))
    return 0


def _only(path: str) -> Value:
    """Return the one Lease or LeaseCandidate of a file."""
    items = list(submitted([path]))
    for item in items:
        if isinstance(item, Unreadable):
            raise Failure(f"{item.place.short}: {item.error}")
    found = [item.document for item in items if isinstance(item, Manifest)]
    if len(found) != 1:
        raise Failure(f"{path}: one {' or '.join(KIND_OF.values())} is needed, {len(found)} found")
    return found[0]


def _name(document: Value) -> str:
    kind, namespace, name = key_of(document)
    return f"{kind} {namespace}/{name}"


def _filled(document: Value, now: int) -> Value:
    """Return the document with the fields of the API server."""
    if not isinstance(document.get("metadata"), dict):
        return document
    uid = _uid("/".join(key_of(document)))
    return {**document, "metadata": {"uid": uid, "creationTimestamp": canonical_seconds(now), **document["metadata"]}}


def _complete(request: Value, *, dry_run: bool) -> Value:
    options: Value = {"kind": f"{request['operation'].capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    request = {**request, "requestKind": request["kind"], "requestResource": request["resource"]}
    request |= {"dryRun": dry_run, "options": options}
    return {**request, "uid": _uid(json.dumps(request, sort_keys=True))}


def _uid(text: str) -> str:
    """Return a UUID that is the same for the same text, so that the same arguments make the same review."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], version=4))
