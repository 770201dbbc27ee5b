"""What a write to a Deployment or a StatefulSet sets that changes its pods, as far as a log has the request.

In: the verb, and the object of the request. Out: a clause. A patch says what it sets, whatever that was before; of a
whole object only what it tells electors is of interest. The other values may be secret, and are not repeated.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

_ELECTION: Final = re.compile(r"--?[A-Za-z-]{0,40}(?:leader|elect|lease)[A-Za-z-]{0,40}=[\w.:/-]{1,60}")
"""An argument that tells an elector how to elect, such as `--leader-elect=false`."""
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_PARTS: Final = ("image", "args", "command", "env")
"""What changes the process of a container."""
_TEMPLATE: Final = "/spec/template/spec/containers/"
_MAX_ARGUMENTS: Final = 4


class _Container(Struct, frozen=True):
    image: object = None
    args: object = None
    command: object = None
    env: object = None


class _PodSpec(Struct, frozen=True):
    containers: Sequence[_Container] | None = None


class _Metadata(Struct, frozen=True):
    annotations: dict[str, object] | None = None


class _Template(Struct, frozen=True):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


class _Spec(Struct, frozen=True):
    replicas: int | None = None
    template: _Template | None = None


class _Workload(Struct, frozen=True):
    spec: _Spec | None = None


class _Operation(Struct, frozen=True):
    path: str = ""
    value: Raw = field(default_factory=lambda: Raw(b"null"))


_workloads: Final = msgspec.json.Decoder(_Workload)
_operations: Final = msgspec.json.Decoder(list[_Operation])


def describe_workload_change(verb: str, sent: bytes) -> str:
    """`image, args (--leader-elect=false)`: what a request sets; "" if the log does not show it, or nothing of that."""
    try:
        if verb == "patch" and sent.lstrip().startswith(b"["):
            return ", ".join(_list_of_operations(_operations.decode(sent)))
        spec = _workloads.decode(sent).spec
    except (ValueError, RecursionError):
        return ""
    if spec is None:
        return ""
    template = spec.template or _Template()
    containers = (template.spec or _PodSpec()).containers or ()
    if verb != "patch":
        return ", ".join(_list_of_election(one.args for one in containers))
    return ", ".join(_list_of_patch(spec, template, containers))


def _list_of_patch(spec: _Spec, template: _Template, containers: Sequence[_Container]) -> Iterator[str]:
    if spec.replicas is not None:
        yield f"replicas {spec.replicas}"
    for part in _PARTS:
        found = [value for one in containers if (value := getattr(one, part)) is not None]
        if found:
            yield _name_part(part, found)
    if template.metadata is not None and _RESTARTED in (template.metadata.annotations or {}):
        yield "restartedAt"


def _list_of_operations(operations: Iterable[_Operation]) -> Iterator[str]:
    for one in operations:
        if one.path == "/spec/replicas":
            yield f"replicas {bytes(one.value).decode()[:10]}"
        elif one.path.startswith(_TEMPLATE):
            part = next((name for name in one.path.removeprefix(_TEMPLATE).split("/") if name in _PARTS), "")
            if part:
                yield _name_part(part, [msgspec.json.decode(one.value)])


def _name_part(part: str, values: Iterable[object]) -> str:
    election = list(_list_of_election(values)) if part == "args" else []
    return f"{part} ({' '.join(election)})" if election else part


def _list_of_election(values: Iterable[object]) -> Iterator[str]:
    """Yield the arguments that tell an elector how to elect; a value is a list of arguments, or one of them."""
    texts = (text for value in values for text in (value if isinstance(value, list) else [value]))
    found = [text for text in texts if isinstance(text, str) and _ELECTION.fullmatch(text)]
    yield from found[:_MAX_ARGUMENTS]
