"""A pod that is not ours: in the namespace `default`, from our image, for one piece of Python."""

import json

from lab.cluster.world import PYTHON, Object, World
from tests.waiting import wait_for

NAME = "elsewhere"
PATH = f"/api/v1/namespaces/default/pods/{NAME}"


def run_elsewhere(world: World, code: str, *arguments: str, seconds: float = 60) -> str:
    """Return the output. Raises RuntimeError if the code fails, TimeoutError if it does not end."""
    container: Object = {"name": "main", "image": world.image, "imagePullPolicy": "IfNotPresent"}
    container |= {"command": [PYTHON, "-c", code, *arguments]}
    spec: Object = {"restartPolicy": "Never", "containers": [container], "automountServiceAccountToken": False}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME}, "spec": spec}
    world.kubectl.run_checked("-n", "default", "create", "-f", "-", manifest=json.dumps(body))
    try:

        def find_end() -> str:
            phase: str = world.client.get(PATH)["status"]["phase"]
            return phase if phase in {"Succeeded", "Failed"} else ""

        phase = wait_for("the pod elsewhere ends", find_end, seconds, 0.5)
        output = world.kubectl.run_checked("-n", "default", "logs", NAME)
    finally:
        world.kubectl.run("-n", "default", "delete", "pod", NAME, "--force", "--grace-period=0")
        wait_for("the pod elsewhere is gone", lambda: world.client.send("GET", PATH).status == 404, 60, 0.5)
    if phase == "Failed":
        raise RuntimeError(f"a pod elsewhere failed:\n{output[-2000:]}")
    return output
