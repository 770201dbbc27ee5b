"""No input makes the readers of fences raise: files come from strangers, holders from whoever writes a lease."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.factories import to_bytes
from tests.policy.fences.made import FENCE, STAMPS, fence
from tests.policy.files import text
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.analysis.inputs.documents import Document, split_documents
from webhook.analysis.suggestions.fence import find_writes_by, suggest_fence
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.doctor.fences_and_stamps import examine_fences
from webhook.api_server.fence.objects import make_fence_manifests
from webhook.text.yaml_writer import write_stream

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["Event", "Pod", "*", "shop"])
)
KEYS = st.sampled_from(
    (
        *("kind", "apiVersion", "metadata", "name", "namespace", "spec", "rules", "verbs", "resources", "roleRef"),
        *("subjects", "user", "verb", "objectRef", "labels", "holderIdentity", "serverVersion", "minor"),
        *("groupVersion", "annotations"),
    )
)
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
OBJECTS = st.lists(st.dictionaries(KEYS, JSON, max_size=6), max_size=4)


@given(st.dictionaries(st.sampled_from([*FENCE, "holder", "mode", "operations", "token", "expired"]), JSON, max_size=4))
def test_a_fence_is_refused_or_rendered(changes: dict[str, Any]) -> None:
    try:
        fences = parse(text(fences=[{**FENCE, **changes}], stamps=STAMPS)).fences
        rendered = write_stream(manifest for one in fences for manifest in make_fence_manifests(one))
    except PolicyError as error:
        rendered = str(error).replace("\n", "\0")
    assert "\0" not in rendered


@given(OBJECTS)
def test_the_doctor_reads_any_objects(objects: list[dict[str, Any]]) -> None:
    for manifest in make_fence_manifests(fence()):
        list(examine_fences(Documents([*objects, manifest]), [fence()], "policy.yaml"))


@given(OBJECTS)
def test_proposals_read_any_objects(objects: list[dict[str, Any]]) -> None:
    events = [{**one, "kind": "Event", "apiVersion": "audit.k8s.io/v1"} for one in objects]
    read = split_documents("audit.log", map(to_bytes, events))
    suggest_fence(find_writes_by((one for one in read if isinstance(one, Document)), ""), "shop/operator")
