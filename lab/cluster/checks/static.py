"""The webhook as a static pod, and its configuration as files on the API server's disk: nothing of it in the API."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial

from lab.cluster.node import ON_DISK, Node
from lab.cluster.world import ROOT, World
from lab.e2e.world import REGISTRATIONS, Row
from tests.waiting import wait_for

PODS = "/api/v1/namespaces/kube-system/pods"
USER = 65532


def check_static_pod(node: Node) -> Callable[[World], Iterator[Row]]:
    """Return the check, which follows docs/static-manifests.md on a node without our objects, and cleans up."""

    def check(world: World) -> Iterator[Row]:
        begin = time.monotonic()
        _put_files(node, world)
        wait_for("the proof is refused", world.is_enforced, 120, 0.5)
        seconds = time.monotonic() - begin
        count = len(world.client.get(REGISTRATIONS)["items"])
        yield Row(
            "a static pod and static manifests",
            f"the proof refused {seconds:.0f} s after the files were there; {count} webhook configurations in the API",
            passed=count == 0,
        )
        (name,) = wait_for("the kubelet shows the pod", partial(_list_mirrors, world), 30, 0.5)
        world.kubectl.run_checked("-n", "kube-system", "delete", "pod", name, "--wait=false")
        time.sleep(5)
        yield Row("after its pod was deleted through the API", "still enforced", passed=world.is_enforced())
        begin = time.monotonic()
        for folder in ("webhooks", "policies", "pods"):
            for file in (node.static / folder).iterdir():
                file.unlink()
        wait_for("nothing is reviewed", lambda: not world.is_enforced(), 150, 0.5)
        away = time.monotonic() - begin
        wait_for("the pod is gone", lambda: not _list_mirrors(world), 90, 0.5)
        yield Row("break-glass: the files deleted from the disk", f"not reviewed after {away:.0f} s", passed=True)

    return check


def _put_files(node: Node, world: World) -> None:
    """Put every file where the page says, in the node's own directory."""
    shipped = world.directory / "checkout" / "deploy" / "static-manifests"
    for folder, names in (("tls", ("tls.crt", "tls.key", "ca.crt")), ("policy", ("policy.yaml",))):
        (node.static / folder).mkdir(exist_ok=True)
        for name in names:
            file = node.static / folder / name
            if folder == "tls":
                shutil.copy(world.certs / name, file)
            else:
                file.write_text("apiVersion: lease-webhook/v1\npreset: standard\n")
            file.chmod(0o400)
            os.chown(file, USER, USER)
    for folder in ("webhooks", "policies"):
        text = world.kubectl.run_checked("kustomize", str(shipped / folder))
        (node.static / folder / "lease-webhook.yaml").write_text(text)
    pod = (ROOT / "deploy" / "static-manifests" / "pod.yaml").read_text()
    pod = pod.replace(ON_DISK, str(node.static)).replace("lease-webhook:name-your-image", world.image)
    (node.static / "pods" / "lease-webhook.yaml").write_text(pod)


def _list_mirrors(world: World) -> list[str]:
    """Return the names of the mirrors of our static pod that are not about to end."""
    items = world.client.get(PODS)["items"]
    names = [one["metadata"]["name"] for one in items if "deletionTimestamp" not in one["metadata"]]
    return [name for name in names if name.startswith("lease-webhook-")]
