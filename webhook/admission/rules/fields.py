"""The fields of both kinds and of a request's options: what each means, who writes it, and which rules read it."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.admission.rules.registry import RULES_IN_ORDER
from webhook.admission.rules.rule import Rule
from webhook.kubernetes.objects import list_versions
from webhook.kubernetes.request import Resource

ANY_KIND: Final = ""
"""The kind of a field that a Lease and a LeaseCandidate have alike."""
_RESOURCE: Final = {"Lease": Resource.LEASES, "LeaseCandidate": Resource.LEASECANDIDATES}


class Field(Struct, frozen=True):
    """One field; `path` is its place in the object, or in the request if it is an option.

    `type` is that of the API reference, `example` a value in YAML. `written_by` names who writes it in an ordinary
    election. `versions` are all of the kind unless given.
    """

    kind: str
    path: str
    type: str
    meaning: str
    written_by: str
    example: str
    versions: tuple[str, ...] = ()

    @property
    def rules(self) -> Iterator[Rule]:
        """The rules that read it, in the order of the registry."""
        reading = (rule for rule in RULES_IN_ORDER if any(path in rule.reads for path in self.paths))
        return (rule for rule in reading if self.kind == ANY_KIND or _RESOURCE[self.kind] in rule.resources)

    @property
    def paths(self) -> tuple[str, ...]:
        """Each path of a field that stands for several."""
        first, *others = self.path.split(", ")
        folder, dot, _ = first.rpartition(".")
        return first, *(f"{folder}{dot}{other}" for other in others)

    @property
    def served(self) -> tuple[str, ...]:
        """The versions that have it."""
        return self.versions or list_versions(self.kind)


LEASE_FIELDS: Final = (
    Field(
        kind="Lease",
        path="spec.holderIdentity",
        type="string",
        meaning="Who holds the lease: a free text that the holder chooses, in client-go the host name, `_` and a UUID. "
        "Empty or absent: no one holds it. Every client that may update the lease can write any text.",
        written_by="The elector that acquires the lease; the API server in a coordinated election. Released by "
        "clearing it.",
        example="checkout-6d5f9c-x2x8p_1f0e",
    ),
    Field(
        kind="Lease",
        path="spec.leaseDurationSeconds",
        type="integer (int32)",
        meaning="How long others must wait after the last renewal that they saw before they may take the lease.",
        written_by="The holder, with each renewal.",
        example="15",
    ),
    Field(
        kind="Lease",
        path="spec.acquireTime",
        type="MicroTime",
        meaning="When the present holder acquired the lease. No decision of an elector depends on it.",
        written_by="The elector that acquires the lease.",
        example="2026-01-31T12:00:00.000000Z",
    ),
    Field(
        kind="Lease",
        path="spec.renewTime",
        type="MicroTime",
        meaning="When the holder last renewed the lease, by its own clock. The API server records in managedFields, by "
        "its clock, when it changed.",
        written_by="The holder, with each renewal.",
        example="2026-01-31T12:00:10.000000Z",
    ),
    Field(
        kind="Lease",
        path="spec.leaseTransitions",
        type="integer (int32)",
        meaning="How often the lease went from one holder to another.",
        written_by="The elector that acquires the lease: the old count plus 1.",
        example="5",
    ),
    Field(
        kind="Lease",
        path="spec.strategy",
        type="string",
        meaning="By which strategy the API server chooses the leader: the lease is of a coordinated election. The API "
        "server drops it while the feature gate CoordinatedLeaderElection is off.",
        written_by="The API server's election.",
        example="OldestEmulationVersion",
    ),
    Field(
        kind="Lease",
        path="spec.preferredHolder",
        type="string",
        meaning="A better candidate than the present holder, which must release the lease when it sees this. Only "
        "together with `strategy`, and behind the same feature gate.",
        written_by="The API server's election.",
        example="checkout-6d5f9c-q7k4m_9d2c",
    ),
)

CANDIDATE_FIELDS: Final = (
    Field(
        kind="LeaseCandidate",
        path="spec.leaseName",
        type="string",
        meaning="The Lease, of the same namespace, that this candidate contends for. Required, and immutable: a "
        "candidate for another lease is another candidate.",
        written_by="The elector, when it creates the candidate.",
        example="checkout",
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.preferredStrategies",
        type="list of strings, replaced as a whole by a merge",
        meaning="The strategies by which a leader may be chosen, the preferred one first. Where one candidate has [X] "
        "and another one [Y, X], Y supersedes X. Where one has [X, Y] and another one [Y, X], no leader is elected "
        "until that is corrected: `audit` finds it (`candidate-strategy-conflict`). Required, behind the feature gate "
        "CoordinatedLeaderElection.",
        written_by="The elector, when it creates the candidate.",
        example="[OldestEmulationVersion]",
        versions=("v1alpha1",),
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.strategy",
        type="string",
        meaning="The strategy by which a leader is to be chosen: `OldestEmulationVersion`, or a name with a slash for "
        "a strategy of another controller. That of the candidates with the highest binaryVersion counts; if "
        "they differ, no leader is elected: `audit` finds it (`candidate-strategy-conflict`). Required.",
        written_by="The elector, when it creates the candidate.",
        example="OldestEmulationVersion",
        versions=("v1beta1", "v1alpha2"),
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.binaryVersion",
        type="string, a semantic version without a leading v",
        meaning="The version of the program. Required; in v1alpha1 only with the strategy OldestEmulationVersion.",
        written_by="The elector, when it creates the candidate.",
        example="1.36.0",
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.emulationVersion",
        type="string, a semantic version without a leading v",
        meaning="The version that the program behaves as, at most binaryVersion. Required with the strategy "
        "OldestEmulationVersion, which elects the candidate with the lowest one.",
        written_by="The elector, when it creates the candidate.",
        example="1.35.0",
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.pingTime",
        type="MicroTime",
        meaning="When the API server last asked the candidate to renew: before an election, to see who still runs, and "
        "from time to time, so that a candidate that runs is not removed.",
        written_by="The API server's election. A candidate writes it back as it is.",
        example="2026-01-31T12:00:00.000000Z",
    ),
    Field(
        kind="LeaseCandidate",
        path="spec.renewTime",
        type="MicroTime",
        meaning="When the candidate last renewed, by its own clock: its answer to a ping. An API server that elects "
        "does not count a candidate that has not renewed for 30 minutes, and deletes it.",
        written_by="The elector, when it sees a new pingTime.",
        example="2026-01-31T12:00:01.000000Z",
    ),
)

METADATA_FIELDS: Final = (
    Field(
        kind=ANY_KIND,
        path="metadata.name",
        type="string",
        meaning="The name of a Lease is what electors agree on. The name of a LeaseCandidate becomes the holder of its "
        "lease if it is elected.",
        written_by="Whoever creates the object; with `generateName`, the API server.",
        example="checkout",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.generateName",
        type="string",
        meaning="From it the API server makes the name of an object that is created without one. It has no effect "
        "later, but an update can change it, as it can a label.",
        written_by="Whoever creates the object.",
        example="checkout-",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.namespace",
        type="string",
        meaning="Both kinds are namespaced. A service account of another namespace is a stranger to the lease.",
        written_by="Whoever creates the object.",
        example="shop",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.uid, creationTimestamp, deletionTimestamp",
        type="string, times",
        meaning="Which object it is, and since when: another one of the same name has another uid.",
        written_by="The API server.",
        example="3b9f0a1c-7a52-4d0e-9a5e-3f0c6c1d2e4f",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.resourceVersion",
        type="string",
        meaning="The stored state that an update starts from. If another write came in between, the API server "
        "answers 409: this is what makes two electors exclude each other.",
        written_by="The API server; a client sends back what it read.",
        example='"812345"',
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.labels, annotations, finalizers",
        type="maps and list of strings",
        meaning="Anyone may set them. An annotation of the API server's policies can be a stamp: who wrote the lease.",
        written_by="Anyone who may update the object.",
        example="{app: checkout}",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.ownerReferences",
        type="list",
        meaning="If none of the owners exists, the garbage collector deletes the object, held or not.",
        written_by="Whoever creates the object; the kubelet, for its node's lease.",
        example="[{apiVersion: v1, kind: Node, name: worker-1, uid: 3b9f0a1c-7a52}]",
    ),
    Field(
        kind=ANY_KIND,
        path="metadata.managedFields",
        type="list",
        meaning="The API server's record of who set which field, and when: the only evidence of a renewal that no "
        "client's clock can falsify.",
        written_by="The API server. A client can send any list; the API server keeps much of it.",
        example="[{manager: checkout, operation: Update, time: 2026-01-31T12:00:10Z}]",
    ),
)

OPTION_FIELDS: Final = (
    Field(
        kind=ANY_KIND,
        path="dryRun",
        type="list: empty, or All",
        meaning="Everything but the store: a dry run gets the verdict of the write.",
        written_by="The client.",
        example="[All]",
    ),
    Field(
        kind=ANY_KIND,
        path="fieldManager",
        type="string of at most 128 bytes, printable",
        meaning="The name under which managedFields record the write; by default, the program's name.",
        written_by="The client.",
        example="kubectl",
    ),
    Field(
        kind=ANY_KIND,
        path="fieldValidation",
        type="Ignore, Warn or Strict",
        meaning="What the API server does about fields that it does not know.",
        written_by="The client.",
        example="Strict",
    ),
    Field(
        kind=ANY_KIND,
        path="gracePeriodSeconds",
        type="integer, 0 or more",
        meaning="For deletions. Neither kind has a use for it.",
        written_by="The client.",
        example="0",
    ),
    Field(
        kind=ANY_KIND,
        path="propagationPolicy, orphanDependents",
        type="Orphan, Background or Foreground; boolean",
        meaning="What becomes of the objects that the deleted one owns; only one of the two may be set.",
        written_by="The client.",
        example="Background",
    ),
    Field(
        kind=ANY_KIND,
        path="preconditions",
        type="uid, resourceVersion",
        meaning="The object is deleted only if it still has these.",
        written_by="The client.",
        example='{resourceVersion: "812345"}',
    ),
)

FIELDS: Final = (*LEASE_FIELDS, *CANDIDATE_FIELDS, *METADATA_FIELDS, *OPTION_FIELDS)


def list_fields(rule: Rule) -> tuple[Field, ...]:
    """Return the fields that a rule reads."""
    return tuple(field for field in FIELDS if rule in field.rules)
