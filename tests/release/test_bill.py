"""The bill of materials of the server: what its lock file lists is what is installed with it."""

import json
import re
from importlib.metadata import requires, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release.bill import LOCK, find_differences, list_components, list_installed


def needed(name: str, *extras: str) -> set[str]:
    """The packages that one needs here with some extras, and those that they need."""
    names: set[str] = set()
    for text in requires(name) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            child = canonicalize_name(requirement.name)
            names |= {child, *needed(child, *requirement.extras)}
    return names


def test_the_lock_file_lists_what_the_server_needs_and_nothing_else() -> None:
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK.read_text(), re.MULTILINE)
    locked: dict[str, str] = {canonicalize_name(name): pinned for name, pinned in lines}
    assert [*find_differences(locked, {name: version(name) for name in needed("lease-webhook", "server")})] == []


def test_a_package_that_only_one_has_or_that_has_another_version_is_named() -> None:
    bill = list_components(json.dumps({"components": [{"name": "a", "version": "1"}, {"name": "B.b", "version": "2"}]}))
    listed = [("a", "2"), ("b_b", "2"), ("c", "3"), ("pip", "26"), ("lease-webhook", "0.2.0")]
    packages = list_installed(json.dumps([{"name": name, "version": number} for name, number in listed]))
    assert [*find_differences(bill, packages)] == [
        "a: 1 in the bill of materials, 2 installed",
        "c: not in the bill of materials, 3 installed",
    ]
    assert next(find_differences(bill, {})) == "a: 1 in the bill of materials, not installed"
