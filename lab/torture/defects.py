"""Twenty-one defects, each a change of one text of the product, and what should notice it."""

from typing import Final

from msgspec import Struct

_RULES: Final = "webhook/admission/rules/election/"
_EXPIRY: Final = "webhook/admission/rules/expiry.py"
_STAMP: Final = "deploy/stamp/policies.yaml"
_TOKEN: Final = "webhook/api_server/fence/token.yaml"
_FENCE: Final = "webhook/api_server/fence/objects.py"
_CONDITION: Final = "deploy/base/90-webhook.yaml"
TESTS: Final = {
    "rule": ("tests/rules", "tests/rule_policies"),
    "condition": ("tests/test_match_condition.py", "tests/model/test_api_server.py"),
    "stamp": ("tests/deploy/test_stamp_values.py", "tests/deploy/test_stamp.py", "tests/model/test_api_server.py"),
    "token": ("tests/fence",),
    "fence": ("tests/fence",),
}
"""By kind the tests of examples and properties."""


NOTHING: Final = "    return NO_FINDINGS\n"
"""Stands after the docstring of the function that `old` begins."""


class Defect(Struct, frozen=True):
    """A change of a file, and the clause that the specification leaves out for the same."""

    kind: str
    name: str
    file: str
    old: str
    new: str
    clause: str
    """The title of a check of `lab.spec`, "" if the specification says nothing of it."""


def _remove_rule(name: str, clause: str, module: str) -> Defect:
    begin = f"def {name.replace('-', '_')}(change: LeaseChange) -> Iterable[Finding]:\n"
    return Defect("rule", f"{name} finds nothing", f"{_RULES}{module}.py", begin, NOTHING, clause)


DEFECTS: Final = (
    _remove_rule("takeover-before-expiry", "Takeover: no takeover-before-expiry", "takeover"),
    _remove_rule("foreign-release", "Takeover: no foreign-release", "release"),
    _remove_rule("duration-shortened", "Takeover: no duration-shortened", "duration"),
    _remove_rule("live-lease-deleted", "Takeover: no live-lease-deleted", "deletion"),
    _remove_rule("owner-reference-added", "Takeover: no owner-reference-added", "owner_references"),
    _remove_rule("renewal-stamp-tampered", "Takeover: no renewal-stamp-tampered", "renewal_stamp"),
    Defect(
        "rule",
        "expiry without a tolerance",
        _EXPIRY,
        "written_at - seen + find_tolerance(duration_seconds) >=",
        "written_at - seen >=",
        "Takeover: no tolerance",
    ),
    Defect(
        "rule",
        "expiry with twice the tolerance",
        _EXPIRY,
        "written_at - seen + find_tolerance(duration_seconds) >=",
        "written_at - seen + 2 * find_tolerance(duration_seconds) >=",
        "Takeover: twice the tolerance",
    ),
    Defect(
        "rule",
        "expiry by renewTime",
        _EXPIRY,
        "    if seen is None or not from_stamps:\n",
        "    if seen is not None or not from_stamps:\n",
        "Takeover: expiry by renewTime",
    ),
    Defect(
        "condition",
        "a new holder is not sent",
        _CONDITION,
        '["holderIdentity", "acquireTime",',
        '["acquireTime",',
        "Takeover: no takeover-before-expiry",
    ),
    Defect(
        "condition",
        "a write that renews nothing is not sent",
        _CONDITION,
        "      || object.?spec.?renewTime == oldObject.?spec.?renewTime\n",
        "",
        "Takeover: no renewal-stamp-tampered",
    ),
    Defect(
        "condition",
        "a duration is not compared",
        _CONDITION,
        '"leaseDurationSeconds", "leaseTransitions", "strategy"',
        '"leaseTransitions", "strategy"',
        "Takeover: no duration-shortened",
    ),
    Defect(
        "stamp",
        "the guard has no tolerance",
        _STAMP,
        " + (variables.oldSpec.leaseDurationSeconds < 10 ? variables.oldSpec.leaseDurationSeconds : 10) >=",
        " >=",
        "Stamp: no tolerance",
    ),
    Defect(
        "stamp",
        "a term changes with the writer only",
        _STAMP,
        "variables.writer != variables.oldWriter || !variables.sameHolder ? string(",
        "variables.writer != variables.oldWriter ? string(",
        "Stamp: a term changes with the writer only",
    ),
    Defect(
        "stamp",
        "an owner is inherited",
        _STAMP,
        "oldObject != null && (!variables.sameHolder ||",
        "false && oldObject != null && (!variables.sameHolder ||",
        "Stamp: an owner is inherited",
    ),
    Defect(
        "stamp",
        "a deletion is not guarded",
        _STAMP,
        "request.operation != 'DELETE' || variables.own || !variables.held ||",
        "true || request.operation != 'DELETE' || variables.own || !variables.held ||",
        "Stamp: a deletion is not guarded",
    ),
    Defect(
        "stamp",
        "only a change of the holder is guarded",
        _STAMP,
        "request.operation != 'UPDATE' || variables.own || !variables.held || !variables.changed || variables.expired",
        "request.operation != 'UPDATE' || variables.own || !variables.held || !variables.changed || variables.expired"
        " || object.spec.holderIdentity == oldObject.spec.holderIdentity",
        "Stamp: only the holder is guarded",
    ),
    Defect(
        "token",
        "an older term is not refused",
        _TOKEN,
        "expression: variables.stored <= variables.term",
        "expression: 'true'",
        "Fence: an older term is not refused",
    ),
    Defect(
        "token",
        "a token falls to the term",
        _TOKEN,
        "variables.before : variables.stored > variables.term ? variables.stored : variables.term",
        "variables.before : variables.term",
        "Fence: the token is not compared",
    ),
    Defect(
        "token",
        "a token is not put back",
        _TOKEN,
        "  - name: changes-the-token\n    expression: >-\n      (!(request",
        "  - name: changes-the-token\n    expression: >-\n      false && (!(request",
        "Fence: a token is not put back",
    ),
    Defect(
        "fence",
        "the writer of the lease is not compared",
        _FENCE,
        "{_write_stamp_expression(fence)} == {writer})",
        '{_write_stamp_expression(fence)} != "")',
        "without a fence",
    ),
)
