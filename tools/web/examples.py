"""The examples of the page: recorded incidents, and recorded reviews with the moment at which each came."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec

from tools.web.runtime import ROOT

_DATA: Final = ROOT / "tests/data"
_INCIDENTS: Final = {
    "leader-paused": "A leader that was paused",
    "lease-stolen": "A lease that another program took",
    "leader-cut-off": "A leader that lost the network",
    "etcd-stalled": "A store that answered slowly",
    "clock-behind": "A leader whose clock is behind",
    "rights-removed": "A leader that lost its rights",
    "two-applications": "Two applications with one lease",
    "steal-denied": "A takeover that the webhook denied",
}
_REVIEWS: Final = {
    "18-update-steal-unexpired-by-other-namespace": "Another namespace takes a live lease",
    "17-update-steal-unexpired-same-namespace": "A neighbor takes a live lease",
    "20-update-foreign-release-empty-string": "A lease is released for its holder",
    "02-update-transitions-int32-max": "leaseTransitions at its maximum",
    "07-update-duration-int32-max": "A duration of 68 years",
    "12-update-renew-time-plus-10-years": "renewTime in ten years",
    "24-update-preferred-holder-introduced": "preferredHolder, set by a client",
    "32-update-holder-identity-bidi": "A holder whose name reverses text",
}
_REVIEWED: Final = "recordings/1.36.3/kubectl-unusual"


def put_examples(folder: Path) -> None:
    """Write the files and their list."""
    listed: list[dict[str, Any]] = []
    for name, title in _INCIDENTS.items():
        files = [f"{name}/audit.log.gz", f"{name}/leases.json.gz"]
        for file in files:
            _copy(_DATA / "incidents" / file, folder / file)
        listed.append({"group": "Incidents: an audit log and a watch", "title": title, "files": files})
    moments = _read_moments()
    for name, title in _REVIEWS.items():
        recorded = (_DATA / _REVIEWED / f"{name}.json").read_bytes()
        (folder / f"{name}.json").write_bytes(msgspec.json.format(recorded, indent=2))
        at = moments[f"{_REVIEWED.partition('/')[2]}/{name}.json"]
        listed.append({"group": "Reviews", "title": title, "review": f"{name}.json", "at": at, "preset": "strict"})
    (folder / "index.json").write_text(json.dumps(listed, indent=1) + "\n")


def _read_moments() -> dict[str, str]:
    lines = (_DATA / "recordings/index.jsonl").read_text().splitlines()
    return {entry["file"]: entry["received"] for entry in map(json.loads, lines)}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
