"""Which patches leave the spec of a lease as it was."""

import pytest

from webhook.analysis.inputs.patches import leaves_spec


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}}}', id="an annotation"),
        pytest.param(b'{"metadata":{"labels":null,"annotations":{}}}', id="labels and annotations"),
        pytest.param(b'{"metadata":{"name":"db","resourceVersion":"7","labels":{"a":"1"}}}', id="a version is named"),
        pytest.param(b'[{"op":"add","path":"/metadata/annotations/a","value":"1"}]', id="an operation"),
        pytest.param(
            b'[{"op":"test","path":"/spec/holderIdentity","value":"a"},{"op":"remove","path":"/metadata/labels"}]',
            id="a test of the spec",
        ),
        pytest.param(
            b'[{"op":"move","from":"/metadata/labels/a","path":"/metadata/labels/b"}]', id="a move of a label"
        ),
    ],
)
def test_a_patch_of_annotations_and_labels_leaves_the_spec(patch: bytes) -> None:
    assert leaves_spec(patch)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b"null", id="nothing is shown"),
        pytest.param(b"{}", id="it is empty"),
        pytest.param(b'{"spec":{"renewTime":null}}', id="a spec"),
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}},"spec":{}}', id="a spec beside"),
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}},"Spec":{}}', id="a spec in another case"),
        pytest.param(b'{"$patch":"replace","metadata":{"annotations":{"a":"1"}}}', id="all is replaced"),
        pytest.param(b'{"apiVersion":"v1","kind":"Lease","metadata":{"labels":{"a":"1"}}}', id="it may be an apply"),
        pytest.param(b'{"metadata":{"finalizers":null,"labels":{}}}', id="finalizers"),
        pytest.param(b'{"metadata":{"name":"db"}}', id="it names the lease only"),
        pytest.param(b'{"metadata":null}', id="no metadata"),
        pytest.param(b'{"metadata":', id="it is cut"),
        pytest.param(b'"\\"metadata\\""', id="a text"),
        pytest.param(b'["/metadata/labels"]', id="no operation"),
        pytest.param(b'[{"op":"add","path":"/metadata/annotationsOfAll","value":"1"}]', id="another part"),
        pytest.param(b'[{"op":"replace","path":"","value":{"metadata":{"labels":{}}}}]', id="the whole object"),
        pytest.param(b'[{"op":"replace","path":"/spec","value":"/metadata/labels"}]', id="the spec by an operation"),
        pytest.param(b'[{"op":"move","from":"/spec/renewTime","path":"/metadata/labels/a"}]', id="it moves renewTime"),
        pytest.param(b'[{"op":"add","value":"/metadata/labels"}]', id="no path"),
    ],
)
def test_any_other_patch_may_have_changed_the_spec(patch: bytes) -> None:
    assert not leaves_spec(patch)
