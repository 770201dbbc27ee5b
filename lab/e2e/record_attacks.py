"""`make record-attacks`: play the standing attacks again, and keep the reviews that the API server made of them."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.e2e.control_plane import ControlPlane
from lab.e2e.toolchain import Binaries, build_all_binaries
from lab.e2e.topics.attacks_on_leases import create_actors, play_all, route, serve_policy
from lab.e2e.world import World
from tests.attacks import recorded
from tests.attacks.attack import PRESETS, policy_text
from tests.deep_json import decode

INDEX = "index.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record on the first version that is asked for. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.record_attacks", description=__doc__)
    parser.add_argument("--kubernetes", default="", help="the first version that begins so, for example v1.36")
    parser.add_argument("--only", default="", help="the attacks whose names contain this; without it all")
    options = parser.parse_args(arguments)
    binaries = build_all_binaries(options.kubernetes)[0]
    with tempfile.TemporaryDirectory(prefix="lease-webhook-record-attacks-") as temporary:
        return record(binaries, Path(temporary), options.only)


def record(binaries: Binaries, directory: Path, only: str) -> int:
    """Play under each preset without matchConditions, so that every write is reviewed. Return the exit status."""
    failures: list[str] = []
    with ControlPlane(binaries, directory) as plane:
        world = World(plane)
        world.create_local_service()
        actors = create_actors(world)
        for preset in PRESETS:
            captured = directory / f"captured-{preset}"
            with serve_policy(world, policy_text(preset), directory, captured) as server:
                route(world, server.port, renewals=True)
                rounds, failed = play_all(world, preset, actors, only)
            failures += failed
            for round_ in rounds:
                reviews = list(_list_stored(list(_read_reviews(captured, round_.attack.lease_name(preset)))))
                if len(reviews) != len(round_.audit_ids):
                    failures.append(
                        f"{round_.attack.id}, {preset}: {len(round_.audit_ids)} writes, {len(reviews)} reviews"
                    )
                recorded.store(round_.attack, preset, reviews)
            print(f"{binaries.version}, {preset}: {len(rounds)} attacks recorded", file=sys.stderr)
    print("\n".join(failures), file=sys.stderr)
    return 1 if failures else 0


def _list_stored(reviews: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the reviews without those of writes that etcd refused as too large.

    The API server sends those again without managedFields.
    """
    for (received, body), (_, following) in zip(reviews, [*reviews[1:], ("", b"")], strict=True):
        if not following or not _is_sent_again(body, following):
            yield received, body


def _is_sent_again(body: bytes, following: bytes) -> bool:
    sent, other = (decode(review)["request"]["object"] for review in (body, following))
    entries = (sent or {"metadata": {}})["metadata"].pop("managedFields", None)
    return bool(entries) and sent == other


def _read_reviews(captured: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for line in (captured / INDEX).read_text().splitlines():
        entry = json.loads(line)
        if entry["name"] == name:
            yield entry["received"], (captured / entry["file"]).read_bytes()


if __name__ == "__main__":
    sys.exit(main())
