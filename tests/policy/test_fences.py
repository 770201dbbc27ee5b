"""What the fences of a policy file may say, and the words with which one is refused."""

from typing import Any

import pytest

from tests.policy.files import policy, text
from webhook.policy.error import PolicyError
from webhook.policy.fences.compiler import MOST_FENCES
from webhook.policy.fences.holder_template import HolderTemplate
from webhook.policy.fences.lint import overlaps
from webhook.policy.fences.model import Fence
from webhook.policy.fences.resource import FencedResource
from webhook.policy.lint import notes
from webhook.policy.parse import parse

FENCE: dict[str, Any] = {
    "name": "shop-operator",
    "lease": "shop/operator",
    "writers": ["shop/operator"],
    "resources": ["configmaps", "deployments.apps/scale"],
}


def fence(**keys: Any) -> Fence:
    return policy(fences=[{**FENCE, **keys}]).fences[0]


def refusal(**keys: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        parse(text(fences=[{**FENCE, **keys}]))
    return str(caught.value).removeprefix("line 1: fences[0].")


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert fence() == Fence(
        name="shop-operator",
        namespace="shop",
        lease="operator",
        writers=(("shop", "operator"),),
        holders=(HolderTemplate("", "pod", "_", open=True),),
        resources=(FencedResource("", "configmaps"), FencedResource("apps", "deployments", "scale")),
        operations=("CREATE", "UPDATE", "DELETE"),
        namespaces=(),
        mode="deny",
        when_unheld="allow",
        missing_lease="deny",
    )


def test_a_policy_without_fences_keeps_its_hash() -> None:
    assert policy().fences == ()
    assert policy().digest != policy(fences=[FENCE]).digest


def test_what_stands_twice_counts_once() -> None:
    assert fence(resources=["secrets", "secrets"]).resources == (FencedResource("", "secrets"),)
    assert fence(operations=["DELETE", "DELETE"]).operations == ("DELETE",)


def test_a_line_is_named() -> None:
    lines = "apiVersion: lease-webhook/v1\nfences:\n- name: a\n  lease: shop/a\n  writers: [shop/a]\n  resources:\n"
    with pytest.raises(PolicyError, match=r'^line 8: fences\[0\]\.resources\[1\]: "deployment" is not a resource of'):
        parse(f"{lines}  - pods\n  - deployment\n")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param({"modes": "deny"}, 'modes: unknown key; did you mean "mode"?', id="a key misspelt"),
        pytest.param({"mode": "off"}, 'mode: "off" is not known; known are audit, deny, warn', id="mode off"),
        pytest.param(
            {"operations": ["UPDTE"]}, 'operations[0]: "UPDTE" is not known; did you mean "UPDATE"?', id="an operation"
        ),
        pytest.param({"operations": []}, "operations: must have at least 1 entry", id="no operation"),
        pytest.param({"writers": []}, "writers: must have at least 1 entry", id="no writer"),
        pytest.param({"writers": ["shop/a"] * 33}, "writers: must have at most 32 entries", id="33 writers"),
        pytest.param(
            {"writers": ["user:kim"]},
            "writers[0]: must be a service account as namespace/name, no wildcards; a user has no pod and cannot be "
            "fenced",
            id="a user",
        ),
        pytest.param(
            {"writers": ['shop/a" || true || "']},
            "writers[0]: must be a service account as namespace/name, no wildcards; a user has no pod and cannot be "
            "fenced",
            id="CEL in a writer",
        ),
        pytest.param(
            {"writers": ["shop/a", "other/a"]},
            "writers[1]: must be of the same namespace as the first writer: pods of two namespaces may have one name, "
            "and the holder identity does not contain the namespace",
            id="writers of two namespaces",
        ),
        pytest.param(
            {"lease": "operator"}, "lease: must be a lease as namespace/name, no wildcards", id="no namespace"
        ),
        pytest.param({"lease": "shop/*"}, "lease: must be a lease as namespace/name, no wildcards", id="any lease"),
        pytest.param(
            {"name": "Shop"},
            "name: must be a name of at most 57 lower case letters, digits and -, which begins and ends with a letter "
            "or digit",
            id="upper case",
        ),
        pytest.param(
            {"namespaces": ["a*"]}, "namespaces[0]: must be the exact name of a namespace, no wildcards", id="g"
        ),
        pytest.param(
            {"resources": ["*"]},
            "resources[0]: `*` includes the leases, events and access reviews that followers must "
            "write; list resources by name, and each subresource (deployments.apps/status) beside its resource",
            id="everything",
        ),
        pytest.param(
            {"resources": ["leases.coordination.k8s.io"]},
            'resources[0]: "leases.coordination.k8s.io" cannot be fenced: a follower writes the lease to become its '
            "holder, so no takeover would be possible; leave leases out, and protect the lease with a binding",
            id="leases",
        ),
        pytest.param(
            {"resources": ["leasecandidates.coordination.k8s.io"]},
            'resources[0]: "leasecandidates.coordination.k8s.io" cannot be fenced: a candidate is written before it '
            "leads, so no candidate could be elected; leave it out",
            id="candidates",
        ),
        pytest.param(
            {"resources": ["events"]},
            'resources[0]: "events" cannot be fenced: followers write events too, for example during the election; '
            "leave "
            "events out",
            id="events",
        ),
        pytest.param(
            {"resources": ["tokenreviews.authentication.k8s.io"]},
            'resources[0]: "tokenreviews.authentication.k8s.io" cannot be fenced: followers send it to '
            "authenticate and "
            "to authorize, and nothing is stored; leave it out",
            id="token reviews",
        ),
        pytest.param(
            {"resources": ["validatingadmissionpolicies.admissionregistration.k8s.io"]},
            'resources[0]: "validatingadmissionpolicies.admissionregistration.k8s.io" cannot be fenced: the API server '
            "admits it without evaluating any policy; leave it out",
            id="the policies themselves",
        ),
        pytest.param(
            {"resources": ["deployments"]},
            'resources[0]: "deployments" is not a resource of the core group; did you mean "deployments.apps"?',
            id="a group forgotten",
        ),
        pytest.param(
            {"resources": ["statefulset.apps"]},
            'resources[0]: "statefulset" is not a resource of group apps; did you mean "statefulsets.apps"?',
            id="a singular",
        ),
        pytest.param(
            {"resources": ["zzzzzz"]},
            'resources[0]: "zzzzzz" is not a resource of the core group; write the group of a custom '
            "resource after its "
            "name, as in widgets.example.com",
            id="a custom resource without its group",
        ),
        pytest.param(
            {"resources": ["deployments/scale.apps"]},
            'resources[0]: "deployments/scale.apps" is not a resource; did you mean "deployments.apps/scale"?',
            id="a group behind the subresource",
        ),
        pytest.param(
            {"resources": ["Deployment.apps"]},
            'resources[0]: "Deployment.apps" is not a resource; did you mean "deployments.apps"?',
            id="a kind",
        ),
        pytest.param(
            {"resources": ["@@"]},
            'resources[0]: "@@" is not a resource; write the plural in lower case, its group and the '
            "subresource, as in "
            "deployments.apps/scale",
            id="anything",
        ),
        pytest.param(
            {"resources": ["pods/stauts"]},
            'resources[0]: "stauts" is not a subresource of pods; did you mean "status"?',
            id="a subresource misspelt",
        ),
        pytest.param(
            {"holder": ["${pod}*"]},
            "holder[0]: `*` also matches longer names: that of op-1 matches op-10; put a character that no name has "
            'between them, as in "${pod}_*"',
            id="no separator",
        ),
        pytest.param(
            {"holder": ["${pod}-*"]},
            "holder[0]: `*` also matches longer names: that of op-1 matches op-10; put a character that no name has "
            'between them, as in "${pod}_*"',
            id="a separator that names hold",
        ),
        pytest.param(
            {"holder": ["*_${pod}"]},
            "holder[0]: `*` is allowed only at the end, and `?` is not allowed",
            id="a star before",
        ),
        pytest.param(
            {"holder": ["${pod}_?"]},
            "holder[0]: `*` is allowed only at the end, and `?` is not allowed",
            id="a question mark",
        ),
        pytest.param(
            {"holder": ["${pid}_*"]}, 'holder[0]: "${pid}" is not known; did you mean "pod"?', id="a variable"
        ),
        pytest.param({"holder": ["${pod}\t_*"]}, "holder[0]: must be printable ASCII", id="a tab"),
        pytest.param(
            {"holder": ["*"]},
            "holder[0]: must have `${pod}` or `${node}` once: the token of a write contains these names, and only "
            "they say "
            "which writer is the holder",
            id="any holder",
        ),
        pytest.param(
            {"holder": ["${pod}_*", "${pod}-leader"]},
            "holder[1]: next to other templates, the name must be separated by a character that no name has, such as "
            "_: "
            "otherwise two pods match one holder",
            id="two templates that one holder fits",
        ),
    ],
)
def test_refusals(keys: dict[str, Any], words: str) -> None:
    assert refusal(**keys) == words


def test_a_name_stands_once() -> None:
    with pytest.raises(PolicyError, match=r"fences\[1\].name: fences\[0\] already has this name"):
        policy(fences=[FENCE, FENCE])


def test_fences_are_bounded() -> None:
    many = [{**FENCE, "name": f"f{number}"} for number in range(MOST_FENCES + 1)]
    with pytest.raises(PolicyError, match="fences: must have at most 256 entries"):
        policy(fences=many)


@pytest.mark.parametrize(
    ("template", "name", "holder", "fits"),
    [
        pytest.param("${pod}_*", "op-1", "op-1_x", True, id="the pod"),
        pytest.param("${pod}_*", "op-1", "op-10_x", False, id="a longer name"),
        pytest.param("${pod}_*", "", "_x", False, id="no name"),
        pytest.param("${pod}", "op-1", "op-1", True, id="the name alone"),
        pytest.param("${pod}", "op-1", "op-1_x", False, id="more than the name"),
        pytest.param("x-${pod}-leader", "op-1", "x-op-1-leader", True, id="text around the name"),
        pytest.param("${pod}_*", "a" * 62 + "-bcd", "a" * 62 + "_x", True, id="a host name cut at a dash"),
        pytest.param("${node}_*", "n1", "n1_x", True, id="the node"),
    ],
)
def test_which_holders_fit(template: str, name: str, holder: str, fits: bool) -> None:
    assert fence(holder=[template]).holders[0].fits(name, holder) is fits


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        pytest.param({}, [], id="the same lease"),
        pytest.param({"lease": "shop/other"}, [(0, 1)], id="another lease"),
        pytest.param({"lease": "shop/other", "writers": ["shop/b"]}, [], id="other writers"),
        pytest.param({"lease": "shop/other", "resources": ["pods"]}, [], id="other resources"),
        pytest.param({"lease": "shop/other", "operations": ["CONNECT"]}, [], id="other operations"),
        pytest.param({"lease": "shop/other", "namespaces": ["b"]}, [], id="other namespaces"),
    ],
)
def test_fences_that_hold_one_write_for_two_leases(keys: dict[str, Any], found: list[tuple[int, int]]) -> None:
    one = fence(namespaces=["a"])
    other = fence(**{"namespaces": ["a"], **keys})
    assert list(overlaps([one, other])) == found


NODE = {"lease": "shop/other", "holder": ["${node}_*"], "mode": "warn", "name": "other"}
BOUND = {"namespace": "shop", "lease": "operator", "writers": ["shop/operator"], "holder": ["${pod}_*"]}


def test_notes() -> None:
    made = policy(fences=[FENCE, {**FENCE, **NODE}], bindings=[BOUND])
    assert notes(made, 0) == [
        (
            "fences[1] (other): lease shop/other has no binding: anyone with write access to it can move the fence; "
            "add it to bindings"
        ),
        "fences[1] (other).holder: ${node} cannot tell apart two pods on the same node",
        "fences[1] (other): mode warn denies nothing, even if the lease does not exist",
        "fences[0] and fences[1] cover the same writes for two leases: a pod must hold both leases to write",
    ]
