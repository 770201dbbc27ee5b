"""Guidance for the rules that repeat the API server's own validation."""

from collections.abc import Mapping
from typing import Final

from webhook.rules.rule import Guidance

_API_SERVER: Final = (
    "The API server refuses the same value itself, before it calls a webhook, so in a cluster that is where the denial "
    "comes from. The rule is for `check` and `replay`, which involve no API server."
)
_NO_CLIENT: Final = "Manifests written by hand, and templates with an empty value. No known elector."

GUIDANCE: Final[Mapping[str, Guidance]] = {
    "object-types": Guidance(
        why="A value of the wrong type cannot be decoded; a client that reads such an object fails.",
        who='Manifests with a quoted number (`leaseDurationSeconds: "15"`) or an unquoted string (`leaseName: 1`).',
        fix="Write the type that the message names. The webhook reports every wrong value at once.",
    ),
    "object-name": Guidance(
        why=_API_SERVER,
        who="Manifests with capitals or underscores in the name of a Lease, or without a namespace.",
        fix="Use lowercase letters, digits, `-` and `.`; a LeaseCandidate may also have capitals and `_`. Set a "
        "namespace.",
    ),
    "metadata-immutable": Guidance(
        why=_API_SERVER,
        who="`check --old` with two manifests of different objects, and restored copies with an old uid.",
        fix="Start from the stored object (`kubectl get -o yaml`), or delete the object and create it.",
    ),
    "object-metadata": Guidance(
        why=_API_SERVER,
        who="Manifests with a label or annotation that is too long, or an owner without a uid.",
        fix="Correct the field that the message names. An update must carry the stored `resourceVersion`.",
    ),
    "lease-duration": Guidance(
        why=_API_SERVER,
        who="Electors configured with less than one second, which client-go writes as 0.",
        fix="Configure a lease duration of whole seconds; 15 is the default of client-go.",
    ),
    "lease-transitions": Guidance(
        why=_API_SERVER + " A counter at 2147483647 makes client-go write -2147483648, which is always refused.",
        who="Electors of a lease whose counter was raised to the maximum.",
        fix="Set `leaseTransitions` back to a small number, once, by hand: `kubectl edit lease`.",
    ),
    "lease-strategy": Guidance(
        why=_API_SERVER,
        who=_NO_CLIENT,
        fix="Leave `strategy` out, or write `OldestEmulationVersion` or a name of your own such as `example.com/mine`.",
    ),
    "lease-preferred-holder": Guidance(
        why=_API_SERVER,
        who=_NO_CLIENT,
        fix="Leave `preferredHolder` out; only the coordinated election sets it, together with `strategy`.",
    ),
    "candidate-lease-name": Guidance(why=_API_SERVER, who=_NO_CLIENT, fix="Set `spec.leaseName`."),
    "candidate-lease-name-immutable": Guidance(
        why=_API_SERVER,
        who="Components that were configured with another lease name under the same candidate name.",
        fix="Delete the LeaseCandidate and let the component create it again.",
    ),
    "candidate-lease-name-format": Guidance(
        why="The API server stores any text. The election then fails to create a Lease of that name, and no leader is "
        "elected.",
        who=_NO_CLIENT,
        fix="Use the name of the Lease: lowercase letters, digits, `-` and `.`.",
    ),
    "candidate-strategy": Guidance(
        why=_API_SERVER,
        who="Manifests for v1alpha1, which has `preferredStrategies`, sent as v1alpha2 or v1beta1.",
        fix="Write `strategy: OldestEmulationVersion`, or a name of your own such as `example.com/mine`.",
    ),
    "candidate-preferred-strategies": Guidance(
        why="The API reference of v1alpha1 requires the list; the code of 1.31 does not check it, and the election "
        "cannot choose.",
        who=_NO_CLIENT,
        fix="Write `preferredStrategies: [OldestEmulationVersion]`.",
    ),
    "candidate-strategies-unique": Guidance(
        why="Kubernetes 1.31 orders the strategies of all candidates; one that follows itself is a cycle, and the "
        "election stops.",
        who=_NO_CLIENT,
        fix="Name each strategy once.",
    ),
    "candidate-binary-version": Guidance(
        why=_API_SERVER,
        who="Versions copied from an image tag: `v1.36.3` instead of `1.36.3`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    "candidate-emulation-version": Guidance(
        why=_API_SERVER,
        who="Versions copied from an image tag: `v1.36.0` instead of `1.36.0`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    "candidate-version-order": Guidance(
        why=_API_SERVER,
        who="Manifests with the two versions swapped.",
        fix="`emulationVersion` may be at most `binaryVersion`.",
    ),
    "candidate-versions-required": Guidance(
        why=_API_SERVER,
        who="Manifests with the strategy OldestEmulationVersion and no `emulationVersion`.",
        fix="Set `emulationVersion`, and in v1alpha1 `binaryVersion` as well.",
    ),
    "request-options": Guidance(
        why=_API_SERVER,
        who="Recorded or hand-written reviews only.",
        fix="Send the options that the message names.",
    ),
}
