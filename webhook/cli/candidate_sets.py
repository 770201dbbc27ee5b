"""The candidates of a list or a replay: which of them are for the same lease, and whether they can agree."""

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.api.objects import LeaseCandidate
from webhook.cli.evaluation import Evaluation
from webhook.policy.model import Policy
from webhook.rules.election.candidate_strategy_conflict import ID, candidates_agree_on_a_strategy
from webhook.rules.mode import Mode

Lease = tuple[str, str]


class CandidateSets(Struct):
    """The candidates that are stored after each write, by namespace and leaseName."""

    stored: dict[Lease, dict[str, LeaseCandidate]] = field(default_factory=dict)
    in_conflict: set[Lease] = field(default_factory=set)
    latest: int = 0
    """The latest moment so far: objects in a list have no order in time."""

    def follow(self, evaluation: Evaluation, policy: Policy) -> Evaluation:
        """Add one write; its verdict gets a finding if this write causes the conflict."""
        request = evaluation.request
        candidate = request.new or request.old
        if not isinstance(candidate, LeaseCandidate):
            return evaluation
        lease = (request.namespace, candidate.spec.lease_name or "")
        self.latest = max(self.latest, evaluation.now)
        candidates = self.stored.setdefault(lease, {})
        if isinstance(request.new, LeaseCandidate):
            candidates[request.name] = request.new
        else:
            candidates.pop(request.name, None)
        modes = policy.for_lease(request.namespace, request.name, request.operation).modes
        mode = min(Mode.AUDIT, policy.mode, modes[ID])
        found = list(candidates_agree_on_a_strategy(candidates.values(), self.latest)) if mode else []
        is_new = bool(found) and lease not in self.in_conflict
        (self.in_conflict.add if found else self.in_conflict.discard)(lease)
        if not is_new:
            return evaluation
        extra = tuple(replace(finding, rule=ID, mode=mode) for finding in found)
        verdict = replace(evaluation.verdict, findings=evaluation.verdict.findings + extra)
        return replace(evaluation, verdict=verdict)
