"""Run the tests of the rules, and compare the policies with the engine on each review of theirs.

`python -m tests.rule_policies.samples [FILE]...`; exit code 1 if they differ. Samples with numbers, bindings or stamps
of their own are left out, and what no API server sends. Those that differ are to be read: samples whose clock is not
that of their stamps, and fractions of a second, do.
"""

import sys
from typing import Any

import pytest

from tests.factories import NOW, Document, to_bytes
from tests.rule_policies import compared
from tests.rule_policies.in_process import ExportedPolicies
from tests.rules import findings
from webhook.admission.policy.file import load
from webhook.admission.rules.limits import DEFAULT_LIMITS
from webhook.admission.rules.registry import RULES


def main() -> int:
    """Compare, and print how many samples there were, of which rules, and which differ."""
    samples: dict[bytes, tuple[Document, int]] = {}
    original = findings.change_of

    def change_of(review: Document, *, now: int = NOW, **others: Any) -> Any:
        own = others.get("binding") or others.get("stamps")
        if not own and others.get("limits", DEFAULT_LIMITS) == DEFAULT_LIMITS:
            samples[to_bytes(review)] = (review, now)
        return original(review, now=now, **others)

    findings.change_of = change_of
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *(sys.argv[1:] or ["tests/rules"])])
    policy = load("strict")
    policies = ExportedPolicies(policy)
    rules: set[str] = set()
    different = []
    for body, (review, now) in samples.items():
        if b"\\u0000" in body or not compared.is_sent(review["request"], body):
            continue
        request = review["request"]
        try:
            wanted = compared.expected(compared.verdict_of(body, policy, now), request)
        except ValueError:
            continue  # the match condition errs: no API server sends such an object
        rules |= {rule for _, rule in wanted}
        try:
            seen = compared.found({(one.mode, one.rule) for one in policies.broken(request)}, request)
        except ValueError as error:
            different.append((str(error)[:300], review))
            continue
        if wanted != seen:
            different.append((f"engine {sorted(wanted - seen)}, policies {sorted(seen - wanted)}", review))
    for what, review in different[:20]:
        request = review["request"]
        specs = [(request.get(name) or {}).get("spec") for name in ("oldObject", "object")]
        print(what, request["operation"], specs, request.get("userInfo"))
    known = {rule.id for rule in RULES.values() if rule.in_cel.is_said}
    print(f"{len(samples)} samples, {len(rules)} of {len(known)} rules, {len(different)} differ")
    if different:
        print("Read them: a clock that is not that of the stamps, or a fraction of a second, explains one.")
    return 1 if code or different else 0


if __name__ == "__main__":
    sys.exit(main())
