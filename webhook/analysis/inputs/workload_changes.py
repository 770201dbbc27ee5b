"""What a write to a Deployment or a StatefulSet sets that changes its pods, as far as a log has the request.

In: the verb, and the object of the request. Out: a clause. A patch says what it sets or removes, whatever that was
before; a whole object says only what it has. Images are repeated, as far as they are written like one, and arguments
that tell an elector how to elect. The other values may be secret, and are not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

_ELECTION: Final = re.compile(r"--?[A-Za-z-]{0,40}(?:leader|elect|lease)[A-Za-z-]{0,40}=[A-Za-z0-9_.:/-]{1,60}")
"""An argument that tells an elector how to elect, such as `--leader-elect=false`; of ASCII, as people can read it."""
_SWITCH: Final = re.compile(r"--?(?:enable-)?leader-elect(?:ion)?(?:=(?P<value>.*))?", re.DOTALL)
"""An argument that switches an election on or off."""
_OFF: Final = frozenset({"false", "False", "FALSE", "f", "F", "0"})
"""Source: `ParseBool` of Go's `strconv`."""
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_PARTS: Final = ("image", "args", "command", "env")
"""What changes the process of a container."""
_REPLICAS: Final = "/spec/replicas"
_WHOLE_TEMPLATE: Final = "/spec/template"
_IMAGE: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._:/-]{0,99})(?:@sha256:(?P<digest>[0-9a-f]{64}))?")
"""A reference to an image, without the end of a long one. Source: `github.com/distribution/reference`."""
_SHORT_DIGEST: Final = 12
"""How many of its digits tell a digest from others, as tools of containers shorten it."""
_TEMPLATE: Final = "/spec/template/spec/containers"
_PART: Final = re.compile(
    rf"(?P<whole>{_TEMPLATE}/(?P<index>[0-9]{{1,3}})/(?P<part>image|args|command|env))(?P<below>/.+)?", re.DOTALL
)
_NAME: Final = re.compile(r"[a-z0-9-]{1,63}")
_MAX_ARGUMENTS: Final = 4
_MAX_IMAGES: Final = 3
_MAX_REPLICAS: Final = 2**31 - 1


class WorkloadChange(Struct, frozen=True):
    """What a write says of the pods of a workload.

    `words` is a clause, or ""; `switched_off` is the container that it gave an argument which switches elections off.
    """

    words: str = ""
    switched_off: str = ""


class _Container(Struct, frozen=True):
    name: object = None
    image: object = UNSET
    args: object = UNSET
    command: object = UNSET
    env: object = UNSET
    directive: object = field(default=None, name="$patch")


class _PodSpec(Struct, frozen=True):
    containers: Sequence[_Container] | None = None


class _Metadata(Struct, frozen=True):
    annotations: dict[str, object] | None = None


class _Template(Struct, frozen=True):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


class _Spec(Struct, frozen=True):
    replicas: int | UnsetType | None = UNSET
    template: _Template | None = None


class _Workload(Struct, frozen=True):
    spec: _Spec | None = None
    kind: object = None
    api_version: object = field(default=None, name="apiVersion")


class _Operation(Struct, frozen=True):
    path: str = ""
    op: str = ""
    value: Raw = field(default_factory=lambda: Raw(b"null"))
    source: object = field(default=None, name="from")


_workloads: Final = msgspec.json.Decoder(_Workload)
_templates: Final = msgspec.json.Decoder(_Template)
_operations: Final = msgspec.json.Decoder(list[_Operation])


def is_test_alone(verb: str, sent: bytes) -> bool:
    """Return whether a JSON patch only tests what an object has, and changes nothing."""
    if verb != "patch" or not sent.lstrip().startswith(b"["):
        return False
    try:
        return all(one.op == "test" for one in _operations.decode(sent))
    except (ValueError, RecursionError):
        return False


def describe_workload_change(verb: str, sent: bytes) -> WorkloadChange:
    """`which set image (db:1.2), args (--leader-elect=false)`; empty if the log does not show it, or none of that."""
    try:
        if verb == "patch" and sent.lstrip().startswith(b"["):
            return _describe_operations(_operations.decode(sent))
        found = _workloads.decode(sent)
    except (ValueError, RecursionError):
        return WorkloadChange()
    if found.spec is None:
        return WorkloadChange()
    template = found.spec.template or _Template()
    containers = (template.spec or _PodSpec()).containers or ()
    is_applied = verb == "patch" and found.kind is not None and found.api_version is not None
    if verb == "patch" and not is_applied:
        return _describe_patch(found.spec, template, [one for one in containers if one.directive != "delete"])
    # An update repeats what others set; who applies an object gives what it is to have.
    has = [f"replicas {found.spec.replicas}"] if is_applied and _is_number(found.spec.replicas) else []
    for container in containers:
        arguments = " ".join(_list_of_election([container.args]))
        where = f" in {_name_container(container.name)}" if len(containers) > 1 else ""
        has.extend([f"{arguments}{where}"] if arguments else [])
    return WorkloadChange(words=f"which has {', '.join(has)}" if has else "")


def _describe_patch(spec: _Spec, template: _Template, containers: Sequence[_Container]) -> WorkloadChange:
    written: list[str] = []
    removed: list[str] = []
    if spec.replicas is None:
        removed.append("replicas")
    elif _is_number(spec.replicas):
        written.append(f"replicas {spec.replicas}")
    for part in _PARTS:
        found = [value for one in containers if (value := getattr(one, part)) is not UNSET]
        kept = [value for value in found if value is not None and not _is_removal(value)]
        if kept:
            written.append(_name_part(part, kept))
        elif found:
            removed.append(part if None in found else f"part of {part}")
    annotations = (template.metadata or _Metadata()).annotations or {}
    if _RESTARTED in annotations:
        (removed if annotations[_RESTARTED] is None else written).append("restartedAt")
    off = next((_name_container(one.name) for one in containers if _is_off([one.args])), "")
    return WorkloadChange(_join(written, removed), off)


def _is_removal(value: object) -> bool:
    """Return whether a list of a patch, such as that of variables, only has what is to be removed."""
    entries = value if isinstance(value, list) else []
    return bool(entries) and all(isinstance(one, dict) and one.get("$patch") == "delete" for one in entries)


def _describe_operations(operations: Iterable[_Operation]) -> WorkloadChange:
    values: dict[str, object] = {}
    """What the operations leave at each path; None if it is removed."""
    for number, one in enumerate(operations):
        if one.op == "test":
            continue
        touched = [one.path, *([one.source] if one.op == "move" and isinstance(one.source, str) else [])]
        # What was below what is replaced, moved or removed is no longer known.
        values = {path: value for path, value in values.items() if not _is_below(path, touched)}
        if _WHOLE_TEMPLATE in values and any(path.startswith(f"{_WHOLE_TEMPLATE}/") for path in touched):
            values[_WHOLE_TEMPLATE] = ""  # it is not as it was set
        if one.op in {"add", "replace"}:
            _note_value(one, number, values)
        elif one.op == "remove":
            _note_removal(one.path, values)
        else:
            values = {path: value for path, value in values.items() if not _is_beside(path, touched)}
    return _describe_values(values)


def _is_below(path: str, touched: Iterable[str]) -> bool:
    # Another container may be at an index after one was added or removed.
    of_list = (_TEMPLATE if one.rpartition("/")[0] == _TEMPLATE else one for one in touched)
    return any(path == one or path.startswith(f"{one}/") for one in of_list)


def _is_beside(path: str, touched: Iterable[str]) -> bool:
    """Return whether a path is of the part of a container that another one is of."""
    parts = [found["whole"] for one in touched if (found := _PART.fullmatch(one))]
    return any(path == part or path.startswith(f"{part}/") for part in parts)


def _note_value(operation: _Operation, number: int, values: dict[str, object]) -> None:
    value = msgspec.json.decode(operation.value)
    if operation.path == _REPLICAS and _is_number(value):
        values[_REPLICAS] = value
    elif operation.path == _WHOLE_TEMPLATE:
        values[_WHOLE_TEMPLATE] = operation.value
    elif _PART.fullmatch(operation.path):
        is_appended = operation.path.endswith("/-")
        for path in [one for one in values if _is_beside(one, [operation.path]) and not is_appended]:
            # It may stand where a value that was set before stood, unless both only took the places of others.
            is_kept = operation.op == "replace" and path[-1].isdecimal() and "/-" not in path
            values[path] = values[path] if is_kept or values[path] is None else ""
        # Each value that is appended is another one.
        values[f"{operation.path}{number}" if is_appended else operation.path] = value if value is not None else ""


def _note_removal(path: str, values: dict[str, object]) -> None:
    found = _PART.fullmatch(path)
    if found is not None and found["below"]:
        # The values after it move to other places.
        for other in [one for one in values if _is_beside(one, [path])]:
            del values[other]
    if path == _REPLICAS or found is not None:
        values[path] = None


def _describe_values(values: dict[str, object]) -> WorkloadChange:
    written: list[str] = []
    removed: list[str] = []
    if _REPLICAS in values:
        count = values[_REPLICAS]
        (removed if count is None else written).append("replicas" if count is None else f"replicas {count}")
    if _WHOLE_TEMPLATE in values:
        template = values[_WHOLE_TEMPLATE]
        written.append(_describe_template(template if isinstance(template, Raw) else Raw(b"null")))
    paths = [(found, value) for path, value in values.items() if (found := _PART.fullmatch(path))]
    for part in _PARTS:
        own = [(found, value) for found, value in paths if found["part"] == part]
        kept = [value for _, value in own if value is not None]
        if kept:
            written.append(_name_part(part, kept))
        elif own:
            removed.append(part if any(not found["below"] for found, _ in own) else f"part of {part}")
    args = [(found["index"], value) for found, value in paths if found["part"] == "args"]
    indexes = dict.fromkeys(index for index, _ in args)
    off = (index for index in indexes if _is_off([value for other, value in args if other == index]))
    return WorkloadChange(_join(written, removed), next((f"the container at index {index}" for index in off), ""))


def _join(written: Sequence[str], removed: Sequence[str]) -> str:
    parts = [f"{verb} {', '.join(names)}" for verb, names in (("set", written), ("removed", removed)) if names]
    return f"which {' and '.join(parts)}" if parts else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_REPLICAS


def _name_container(name: object) -> str:
    return f"container {name}" if isinstance(name, str) and _NAME.fullmatch(name) else "a container"


def _name_part(part: str, values: Iterable[object]) -> str:
    if part == "image":
        images = list(_list_of_images(values))
        return f"{part} ({', '.join(images)})" if images else part
    election = list(_list_of_election(values)) if part == "args" else []
    return f"{part} ({' '.join(election)})" if election else part


def _describe_template(value: Raw) -> str:
    """`the whole pod template (image shop/db:1.2)`: what of it is new, the log does not show."""
    try:
        template = _templates.decode(value)
    except (ValueError, RecursionError):
        return "the whole pod template"
    containers = (template.spec or _PodSpec()).containers or ()
    images = list(_list_of_images(one.image for one in containers))
    election = list(_list_of_election(one.args for one in containers))
    parts = [f"image {', '.join(images)}"] if images else []
    parts += [f"args {' '.join(election)}"] if election else []
    return f"the whole pod template ({'; '.join(parts)})" if parts else "the whole pod template"


def _list_of_images(values: Iterable[object]) -> Iterator[str]:
    """Yield the images among values, the digest of each shortened; none if there are many, or one that is no image."""
    known = list(values)
    found = [_IMAGE.fullmatch(one) if isinstance(one, str) else None for one in known]
    if len(found) > _MAX_IMAGES or None in found:
        return
    for one in found:
        assert one is not None
        digest = one["digest"]
        yield f"{one['name']}@sha256:{digest[:_SHORT_DIGEST]}..." if digest else one["name"]


def _list_of_election(values: Iterable[object]) -> Iterator[str]:
    """Yield the arguments that tell an elector how to elect; a value is a list of arguments, or one of them."""
    yield from [text for text in _list_of_texts(values) if _ELECTION.fullmatch(text)][:_MAX_ARGUMENTS]


def _is_off(values: Iterable[object]) -> bool:
    """Return whether arguments switch an election off, and none switches it on."""
    switches = [found["value"] for text in _list_of_texts(values) if (found := _SWITCH.fullmatch(text))]
    return bool(switches) and all(value in _OFF for value in switches)


def _list_of_texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))
