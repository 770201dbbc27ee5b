"""Files of an incident whose expected claims are written down before `why` is asked."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.e2e.incidents.recording import LARGEST
from lab.e2e.incidents.scene import Scene
from lab.e2e.incidents.truth import Leadership, find_double_leadership, find_leaderless, find_leaderships, format_time

WATCH: Final = "watch.jsonl.gz"
AUDIT_LOG: Final = "audit.jsonl.gz"
DUMP: Final = "dump.json.gz"
PLAIN_DUMP: Final = "dump-plain.json.gz"
TRUTH: Final = "truth.json"


def keep(directory: Path, files: Mapping[str, bytes], truth: Mapping[str, Any]) -> None:
    """Write everything; raises RuntimeError if a file is too large."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) > LARGEST:
            raise RuntimeError(f"{directory / name} has {len(packed)} bytes")
        (directory / name).write_bytes(packed)
    (directory / TRUTH).write_text(json.dumps(truth, indent=1) + "\n")


def dump_leases(scene: Scene, namespaces: Sequence[str]) -> dict[str, bytes]:
    """Return the output of `kubectl get leases` for some namespaces, with managedFields and without."""
    dumps = {}
    for name, flags in ((DUMP, ["--show-managed-fields"]), (PLAIN_DUMP, [])):
        leases = json.loads(scene.stage.kubectl.run_checked("get", "leases", "-A", "-o", "json", *flags))
        leases["items"] = [one for one in leases["items"] if one["metadata"]["namespace"] in namespaces]
        dumps[name] = json.dumps(leases).encode()
    return dumps


def describe_truth(
    scene: Scene,
    about: Mapping[str, Any],
    expect: Mapping[str, Any],
    leaderships: Sequence[Leadership],
    end: int,
    watch: bytes,
) -> dict[str, Any]:
    """Return the truth as a JSON object with RFC 3339 times; `end` of the recording in microseconds since 1970."""
    return {
        **about,
        "recorded_until": format_time(end),
        "actions": [
            {"at": format_time(one.at), "what": one.what} for one in sorted(scene.deeds, key=lambda one: one.at)
        ],
        "processes": list(_describe_processes(scene, end)),
        "leaderless": [_describe_gap(begins, until, end) for begins, until in find_leaderless(leaderships, end)],
        "two_led": [_describe_gap(begins, until, end) for begins, until in find_double_leadership(leaderships, end)],
        "holders_stored": list(_list_holders(scene, watch)),
        "expect": expect,
    }


def _describe_processes(scene: Scene, end: int) -> Iterator[dict[str, Any]]:
    for replica in scene.replicas:
        acted = [one for one in find_leaderships(replica.identity, replica.list_reports()) if one.begins < end]
        believed = [one for one in find_leaderships(replica.identity, replica.list_printed()) if one.begins < end]
        yield {
            "pod": replica.pod.name,
            "id": replica.identity,
            "client": replica.client,
            "acted": [[format_time(one.begins), format_time(min(one.find_end(end), end))] for one in acted],
            "believed": [
                [format_time(one.begins), None if one.ends is None else format_time(one.ends)] for one in believed
            ],
        }
    for holder in dict.fromkeys(one.holder for one in scene.others):
        own = [one for one in scene.others if one.holder == holder]
        spans = [[format_time(one.begins), format_time(one.find_end(end))] for one in own]
        yield {"pod": "", "id": holder, "client": "a program of its own", "acted": spans, "believed": spans}


def _describe_gap(begins: int, until: int, end: int) -> dict[str, Any]:
    return {
        "from": format_time(begins),
        "to": None if until >= end else format_time(until),
        "seconds": round((until - begins) / 1_000_000, 2),
    }


def _list_holders(scene: Scene, watch: bytes) -> Iterator[str]:
    """Yield the holders as they were stored one after another, by the watch."""
    last = ""
    for line in watch.splitlines():
        event = json.loads(line)
        metadata = event["object"]["metadata"]
        if (metadata["namespace"], metadata["name"]) != (scene.namespace, scene.lease) or event["type"] == "DELETED":
            continue
        holder = event["object"]["spec"].get("holderIdentity") or ""
        if holder != last:
            yield holder
        last = holder
