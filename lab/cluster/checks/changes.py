"""A renewed Secret, a changed and a broken ConfigMap, as the kubelet brings them into running pods."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from lab.cluster.load import Load
from lab.cluster.world import NAMESPACE, World
from lab.e2e.webhook_server import make_certificates
from lab.e2e.world import Row
from tests.waiting import wait_for

T = TypeVar("T")
METRICS = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:8081/metrics", timeout=5).read().decode())
"""
LONGEST = 150.0
"""The kubelet looks every 60 to 90 s, and after a change of what it watches at once."""
PRESET = re.compile(r'lease_webhook_policy_info\{.*preset="(\w+)".*\} 1')


def renew_secret(world: World) -> Iterator[Row]:
    """Renew the leaf under the same CA, as README says."""
    with Load(world) as load:
        before, restarts = _read_serving_not_after(world), world.count_restarts()
        make_certificates(world.certs)
        text = world.render("self-signed", "strict")
        world.kubectl.run_checked("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=text)
        seconds = _measure_wait(lambda: all(end > before for end in _read_each(world, _read_not_after)))
        is_steady, report = world.count_restarts() == restarts, load.report()
        observation = f"served by both pods after {seconds:.0f} s, {'no' if is_steady else 'with a'} restart; {report}"
        yield Row("a renewed certificate in the Secret", observation, passed=is_steady and report.passed)


def change_policy(world: World) -> Iterator[Row]:
    """Apply another preset, then an invalid policy file, then restore the first preset."""
    with Load(world) as load:
        restarts, observations = world.count_restarts(), []
        _put(world, "apiVersion: lease-webhook/v1\npreset: observe\n")
        seconds = _measure_wait(lambda: set(_read_each(world, _read_preset)) == {"observe"})
        observations.append(f"in force after {seconds:.0f} s")
        report = load.report()
        yield Row("a changed policy in the ConfigMap", f"{observations[-1]}; {report}", passed=report.passed)
        _put(world, "preset: [this is not a policy\n")
        seconds = _measure_wait(lambda: min(_read_each(world, _read_failures)) > 0)
        time.sleep(35)  # three periods of the liveness probe
        is_kept = (
            set(_read_each(world, _read_preset)) == {"observe"}
            and world.is_ready()
            and world.count_restarts() == restarts
        )
        report = load.report()
        yield Row(
            "a policy that cannot be read",
            f"noticed after {seconds:.0f} s; the old one in force, both ready, no restart; {report}",
            passed=is_kept and report.passed,
        )
        _put(world, "apiVersion: lease-webhook/v1\npreset: standard\n")
        _measure_wait(lambda: set(_read_each(world, _read_preset)) == {"standard"})


def _put(world: World, policy: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "lease-webhook-policy", "namespace": NAMESPACE},
        "data": {"policy.yaml": policy},
    }
    world.kubectl.run_checked("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=json.dumps(body))


def _measure_wait(probe: Callable[[], bool]) -> float:
    begin = time.monotonic()
    wait_for("the change is in force", probe, LONGEST, 0.5)
    return time.monotonic() - begin


def _read_each(world: World, read: Callable[[str], T]) -> list[T]:
    return [read(world.run_python(name, METRICS)) for name in sorted(world.list_pod_names())]


def _read_serving_not_after(world: World) -> float:
    return max(_read_each(world, _read_not_after))


def _read_not_after(metrics: str) -> float:
    (value,) = re.findall(r'lease_webhook_certificate_not_after_seconds\{certificate="serving"\} (\S+)', metrics)
    return float(value)


def _read_preset(metrics: str) -> str:
    """Return the preset; both while the workers of a pod do not agree."""
    return " and ".join(sorted(set(PRESET.findall(metrics))))


def _read_failures(metrics: str) -> float:
    reloads = re.findall(r"lease_webhook_reloads_total\{([^}]*)\} (\S+)", metrics)
    return sum(float(value) for labels, value in reloads if 'what="policy"' in labels and 'result="failure"' in labels)
