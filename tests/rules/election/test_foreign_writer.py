"""Rule foreign-writer, and what the other rules read where the API server stamps writers."""

from typing import Any

import pytest

from tests.factories import NOW, STAMP_ENTRY, Document, Tweak, changed, drop, make_lease, make_review, put, to_bytes
from tests.rules import wording
from tests.rules.findings import DENY, FORBIDDEN, RIVAL, SECOND, by_user, deleted, take, update
from tests.rules.findings import findings as found_by
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.parse import parse
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.stamps import Stamps
from webhook.admission.verdict import Verdict
from webhook.kubernetes import times
from webhook.kubernetes.review import decode

STAMPS = Stamps("1a2b3c4d")
HOLDER = "11111111-0000-0000-0000-000000000001 system:serviceaccount:shop:checkout"
OTHER = "11111111-0000-0000-0000-000000000002 system:serviceaccount:shop:checkout"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}


def stamped(writer: str = HOLDER, seconds: float | None = -5, entries: Any = (STAMP_ENTRY,)) -> Tweak:
    """Stamped by this writer so many seconds after NOW; None: not dated."""
    written = "" if seconds is None else times.format_time(NOW + int(seconds * SECOND))

    def tweak(lease: Document) -> None:
        lease["metadata"]["managedFields"] = list(entries)
        lease["metadata"]["annotations"] = {
            "lease-webhook/writer-1a2b3c4d": writer,
            "lease-webhook/written-1a2b3c4d": written,
        }

    return tweak


def by(writer: str) -> Tweak:
    """The writer of such a stamp sends it."""
    uid, _, name = writer.partition(" ")
    extra = {} if uid == "-" else {"authentication.kubernetes.io/pod-uid": [uid]}
    return put("request.userInfo", {"username": name, "groups": [], "extra": extra})


RENEWAL = put("spec.renewTime", times.format_micro_time(NOW + SECOND))
TAKEOVER = (take(RIVAL), RENEWAL, put("spec.leaseTransitions", 6))


def review(*tweaks: Tweak, writer: str = OTHER, stamp: Tweak | None = None, old: Tweak | None = None) -> Document:
    """A write of the stamped lease, by default one by another writer who is stamped now."""
    before = changed(make_lease(), old or stamped())
    after = changed(before, stamp or stamped(writer, 0), *tweaks)
    return make_review(by(writer), old=before, new=after)


def found(document: Document, stamps: Stamps | None = STAMPS) -> set[str]:
    """The rules with a finding that may deny and does not rest on a client's clock."""
    rules = found_by(document, stamps=stamps)
    return {rule for rule, said in rules.items() if any(one.tier is DENY and not one.without_stamps for one in said)}


OWNED = put("metadata.ownerReferences", [OWNER])
FOREIGN: dict[str, tuple[Tweak, ...]] = {
    "a takeover": TAKEOVER,
    "a renewal in the holder's name": (RENEWAL,),
    "a release": (take(""),),
    "a shorter duration": (put("spec.leaseDurationSeconds", 1),),
    "an owner": (OWNED,),
    "a finalizer of a lease that was deleted": (put("metadata.finalizers", []),),
}


@pytest.mark.parametrize("tweaks", [pytest.param(tweaks, id=name) for name, tweaks in FOREIGN.items()])
def test_another_writer_of_a_live_lease_is_found(tweaks: tuple[Tweak, ...]) -> None:
    def deleted(lease: Document) -> None:
        stamped()(lease)
        if tweaks is FOREIGN["a finalizer of a lease that was deleted"]:
            lease["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}

    kept = tweaks[0] in (OWNED, FOREIGN["a finalizer of a lease that was deleted"][0])
    document = review(*tweaks, old=deleted, stamp=stamped() if kept else None)
    (finding,) = found_by(document, stamps=STAMPS)["foreign-writer"]
    assert (finding.error.type, finding.error.field, finding.tier) == (FORBIDDEN, "spec", DENY)
    assert not finding.without_stamps


@pytest.mark.parametrize("tweaks", [pytest.param(tweaks, id=name) for name, tweaks in list(FOREIGN.items())[:5]])
def test_the_stamped_writer_is_not_found(tweaks: tuple[Tweak, ...]) -> None:
    assert "foreign-writer" not in found_by(review(*tweaks, writer=HOLDER), stamps=STAMPS)


def test_a_deletion_is_found_unless_the_writer_or_a_collector_deletes() -> None:
    stored = changed(make_lease(), stamped())
    assert "foreign-writer" in found(make_review(by(OTHER), old=stored))
    (finding,) = found_by(make_review(by(OTHER), old=stored), stamps=STAMPS)["foreign-writer"]
    assert finding.error.field == "metadata"
    assert "foreign-writer" not in found(make_review(by(HOLDER), old=stored))
    collector = by_user("system:serviceaccount:kube-system:generic-garbage-collector")
    assert "foreign-writer" not in found(make_review(collector, old=stored))


def test_a_label_by_another_writer_is_not_found() -> None:
    document = review(put("metadata.labels", {"a": "b"}), stamp=stamped())
    assert not found_by(document, stamps=STAMPS)


@pytest.mark.parametrize("left", [stamped(OTHER, None), stamped("", None)], ids=["another's stamp", "no stamp"])
def test_fields_that_the_api_server_dropped_make_no_other_writer(left: Tweak) -> None:
    """It drops strategy and preferredHolder after it stamped who sent them, or removed the stamps beside a long one."""
    document = review(stamp=left)
    assert found(document) == {"foreign-writer"}
    (finding,) = found_by(document, stamps=STAMPS)["foreign-writer"]
    assert "retry without strategy and preferredHolder" in finding.error.detail
    binding = Binding(service_accounts=frozenset({("shop", "checkout")}), holders=("*",))
    assert "foreign-writer" in found_by(document, stamps=STAMPS, binding=binding)
    assert "foreign-writer" not in found_by(review(stamp=left, writer=HOLDER), stamps=STAMPS)


def test_a_writer_of_a_binding_changes_owners_and_nothing_else() -> None:
    """An operator that owns the lease of its pods sets its owner again."""
    binding = Binding(service_accounts=frozenset({("shop", "checkout")}), holders=("*",))
    for tweaks, is_found in ((OWNED, False), (RENEWAL, True), (take(""), True)):
        document = review(tweaks, stamp=stamped() if tweaks is OWNED else None)
        assert ("foreign-writer" in found_by(document, stamps=STAMPS, binding=binding)) == is_found
    strangers = Binding(service_accounts=frozenset({("other", "checkout")}), holders=("*",))
    assert "foreign-writer" in found_by(review(OWNED, stamp=stamped()), stamps=STAMPS, binding=strangers)


def test_a_takeover_after_expiry_by_the_stamps_is_not_found() -> None:
    document = review(*TAKEOVER, old=stamped(HOLDER, -20))
    assert found(document) == set()


def test_a_takeover_is_dated_by_its_stamp_and_not_by_our_clock() -> None:
    document = review(*TAKEOVER, old=stamped(HOLDER, -20), stamp=stamped(OTHER, -16))
    assert found(document) == {"foreign-writer", "takeover-before-expiry"}


def test_renewtime_of_the_holder_decides_nothing_beside_a_stamp() -> None:
    def hour_behind(lease: Document) -> None:
        stamped()(lease)
        lease["spec"]["renewTime"] = times.format_micro_time(NOW - 3600 * SECOND)

    document = review(*TAKEOVER, old=hour_behind)
    assert found(document) == {"foreign-writer", "takeover-before-expiry"}


def test_a_takeover_without_a_time_proves_no_expiry() -> None:
    assert found(review(*TAKEOVER, stamp=stamped(OTHER, None))) == {
        "foreign-writer",
        "takeover-before-expiry",
    }
    late = review(*TAKEOVER, old=stamped(HOLDER, -20), stamp=stamped(OTHER, None))
    assert found(late) == {"foreign-writer"}
    (finding,) = found_by(late, stamps=STAMPS)["foreign-writer"]
    assert "retry without managedFields" in str(finding.error)


def test_a_lease_that_was_never_dated_is_evaluated_by_renewtime_which_only_warns() -> None:
    document = review(*TAKEOVER, old=stamped(HOLDER, None))
    assert all(one.without_stamps for one in found_by(document, stamps=STAMPS)["foreign-writer"])


def test_no_one_is_foreign_to_a_lease_without_a_writer_or_a_holder() -> None:
    assert "foreign-writer" not in found(review(RENEWAL, old=stamped("")))

    def free(lease: Document) -> None:
        stamped()(lease)
        lease["spec"]["holderIdentity"] = ""

    assert "foreign-writer" not in found(review(*TAKEOVER, old=free))


def test_pods_of_a_user_are_one_writer_if_the_policy_says_so() -> None:
    document = review(RENEWAL)
    assert "foreign-writer" in found(document)
    assert "foreign-writer" not in found(document, Stamps("1a2b3c4d", by_user=True))
    stranger = review(RENEWAL, writer="- system:serviceaccount:shop:deployer")
    assert "foreign-writer" in found(stranger, Stamps("1a2b3c4d", by_user=True))


@pytest.mark.parametrize(
    ("uids", "name"),
    [
        pytest.param([], HOLDER.partition(" ")[2], id="none, and the holder's user"),
        pytest.param([], HOLDER, id="none, and a user that is called as the holder's stamp"),
        pytest.param([HOLDER.partition(" ")[0]] * 2, HOLDER.partition(" ")[2], id="two"),
    ],
)
def test_only_one_pod_uid_is_one(uids: list[str], name: str) -> None:
    document = review(RENEWAL)
    document["request"]["userInfo"] = {"username": name, "extra": {"authentication.kubernetes.io/pod-uid": uids}}
    assert "foreign-writer" in found(document)


def test_a_pod_uid_has_no_blank() -> None:
    """A user name may have one, so the uid would take the beginning of another writer's user."""
    document = review(RENEWAL, old=stamped("uid jane doe"))
    for uid, name, is_found in (("uid", "jane doe", False), ("uid jane", "doe", True)):
        extra = {"authentication.kubernetes.io/pod-uid": [uid]}
        document["request"]["userInfo"] = {"username": name, "extra": extra}
        assert ("foreign-writer" in found(document)) == is_found


@pytest.mark.parametrize(
    ("rule", "account"), [("foreign-release", "shop"), ("foreign-release-across-namespaces", "guest")]
)
def test_the_stamped_writer_releases_under_whatever_name(rule: str, account: str) -> None:
    """Its identity need not be the name of its pod."""
    writer = f"uid-1 system:serviceaccount:{account}:elector"
    extra = {"pod-uid": ["uid-1"], "pod-name": ["elector-0"]}
    for uid, is_found in (("uid-1", False), ("uid-2", True)):
        named = {f"authentication.kubernetes.io/{name}": value for name, value in (extra | {"pod-uid": [uid]}).items()}
        user = {"username": writer.partition(" ")[2], "groups": [], "extra": named}
        document = review(take(""), stamp=stamped(writer, 0), old=stamped(writer))
        document["request"]["userInfo"] = user
        assert (rule in found_by(document, stamps=STAMPS)) == is_found


@pytest.mark.parametrize("rule", ["owner-reference-added", "owner-reference-removed"])
def test_the_stamped_writer_adds_and_removes_its_owner(rule: str) -> None:
    none = put("metadata.ownerReferences", [])
    before, after = (none, OWNED) if rule.endswith("added") else (OWNED, none)
    for writer, is_found in ((HOLDER, False), (OTHER, True)):
        old = changed(make_lease(), stamped(), before)
        document = make_review(by(writer), old=old, new=changed(old, after))
        assert (rule in found_by(document, stamps=STAMPS)) == is_found


@pytest.mark.parametrize("writer", [HOLDER, "- kube-scheduler"])
def test_the_stamped_writer_deletes_and_cuts_its_lease(writer: str) -> None:
    """Some electors do so instead of a release."""
    old = changed(make_lease(), stamped(writer))
    deletion = make_review(old=old)
    cut = make_review(old=old, new=changed(old, stamped(writer, 0), put("spec.leaseDurationSeconds", 1)))
    for rule, document in (("live-lease-deleted", deletion), ("duration-shortened", cut)):
        for sender, is_found in ((writer, False), (OTHER, True)):
            assert (rule in found_by(changed(document, by(sender)), stamps=STAMPS)) == is_found


@pytest.mark.parametrize("namespace", ["shop", "guest"])
def test_the_stamped_pod_names_another_holder_and_no_other_pod_of_its_user_does(namespace: str) -> None:
    """An elector may number its identity, or hand the lease over."""
    account = f"system:serviceaccount:{namespace}:checkout"
    rules = {"takeover-before-expiry"} | ({"takeover-across-namespaces"} if namespace == "guest" else set())
    for stamps in (STAMPS, Stamps("1a2b3c4d", by_user=True)):
        for uid, expected in (("uid-1", set()), ("uid-2", rules)):
            document = review(*TAKEOVER, writer=f"{uid} {account}", old=stamped(f"uid-1 {account}"))
            assert found(document, stamps) & rules == expected
    user = review(*TAKEOVER, writer="- kube-scheduler", old=stamped("- kube-scheduler"))
    assert "takeover-before-expiry" in found(user)


@pytest.mark.parametrize(("stamp", "is_found"), [(0, True), (-5, True), (86_400 * 365 * 10, False)])
def test_the_clock_of_a_renew_time_is_the_stamp_of_the_write(stamp: int, is_found: bool) -> None:
    """The clock of the webhook may be wrong by years."""
    document = review(put("spec.renewTime", "2035-06-01T00:00:00.000000Z"), stamp=stamped(HOLDER, stamp), writer=HOLDER)
    assert ("renew-time-in-future" in found_by(document, stamps=STAMPS)) == is_found


# ---- when the stamps are believed ------------------------------------------------------------------------------------


def test_stamps_are_annotations_like_others_where_the_policy_names_none() -> None:
    document = review(*TAKEOVER)
    assert "foreign-writer" not in found_by(document)


def test_the_names_of_another_suffix_are_annotations_like_others() -> None:
    assert "foreign-writer" not in found_by(review(*TAKEOVER), stamps=Stamps("ffffffff"))


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="no entry"),
        pytest.param([STAMP_ENTRY, STAMP_ENTRY | {"manager": "b"}], id="another entry beside it"),
        pytest.param(
            [STAMP_ENTRY | {"time": "2026-01-01T00:00:00Z"}], id="an entry of its name that an API server dated"
        ),
        pytest.param([STAMP_ENTRY | {"manager": "b"}], id="an entry of another name"),
    ],
)
def test_a_stamp_is_believed_beside_the_constant_entry_only(entries: list[Document]) -> None:
    document = review(*TAKEOVER, old=stamped(entries=entries))
    assert "foreign-writer" not in found_by(document, stamps=STAMPS)


LISTED = pytest.mark.parametrize("stamps", [pytest.param(STAMPS, id="listed"), pytest.param(None, id="not listed")])


@LISTED
@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((stamped(HOLDER, 0), RENEWAL), id="the first stamped renewal"),
        pytest.param((stamped("", None), put("metadata.labels", {"a": "b"})), id="a label, and empty stamps"),
        pytest.param((stamped(HOLDER, 0), *TAKEOVER), id="a takeover"),
    ],
)
def test_what_an_api_server_stamped_is_no_forgery(tweaks: tuple[Tweak, ...], stamps: Stamps | None) -> None:
    before = changed(make_lease(), put("metadata.managedFields.0.time", times.format_time(NOW - 20 * SECOND)))
    document = make_review(by(HOLDER), old=before, new=changed(before, *tweaks))
    assert "renewal-stamp-tampered" not in found_by(document, stamps=stamps)


@LISTED
def test_the_holder_of_a_stamped_lease_renews_and_another_writer_labels_it(stamps: Stamps | None) -> None:
    assert "renewal-stamp-tampered" not in found_by(review(RENEWAL, writer=HOLDER), stamps=stamps)
    labeled = review(put("metadata.labels", {"a": "b"}), stamp=stamped())
    assert "renewal-stamp-tampered" not in found_by(labeled, stamps=stamps)
    created = make_review(by(HOLDER), new=changed(make_lease(), stamped(HOLDER, 0)))
    assert "renewal-stamp-tampered" not in found_by(created, stamps=stamps)


@LISTED
@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((), id="nothing"),
        pytest.param((put("metadata.labels", {"a": "b"}),), id="a label, which another webhook may have set"),
        pytest.param((drop("spec.renewTime"),), id="a removed time, which no one owns then"),
        pytest.param((put("metadata.annotations", {"a/writer-1a2b3c4d": HOLDER}),), id="an annotation of another name"),
    ],
)
def test_the_constant_entry_is_a_forgery_where_nothing_is_set(tweaks: tuple[Tweak, ...], stamps: Stamps | None) -> None:
    before = make_lease()
    document = make_review(
        by(OTHER), old=before, new=changed(before, *tweaks, put("metadata.managedFields", [STAMP_ENTRY]))
    )
    assert "renewal-stamp-tampered" in found_by(document, stamps=stamps)


@LISTED
def test_a_lease_is_not_created_with_the_constant_entry_alone(stamps: Stamps | None) -> None:
    lease = changed(make_lease(), put("metadata.managedFields", [STAMP_ENTRY]))
    lease["spec"] = {}
    lease["metadata"].pop("labels", None)
    assert "renewal-stamp-tampered" in found_by(make_review(by(OTHER), new=lease), stamps=stamps)


def test_entries_are_evaluated_where_a_write_is_not_stamped_after_all() -> None:
    before = make_lease()
    document = make_review(by(HOLDER), old=before, new=changed(before, put("metadata.managedFields", [])))
    assert "renewal-stamp-tampered" in found_by(document, stamps=STAMPS)


# ---- what the policy file says ---------------------------------------------------------------------------------------


def verdict_of(document: Document, text: str, preset: str = "strict") -> Verdict:
    policy = parse(f"apiVersion: lease-webhook/v1\npreset: {preset}\nstamps: [{text}]\n")
    return evaluate(decode(to_bytes(document)), policy, NOW)


def test_strict_denies_and_standard_warns_where_the_policy_names_stamps() -> None:
    here = "{suffix: 1a2b3c4d, namespaces: [shop]}"
    denied = verdict_of(review(RENEWAL), here)
    assert (denied.allowed, [one.rule for one in denied.findings]) == (False, ["foreign-writer"])
    warned = verdict_of(review(RENEWAL), here, "standard")
    assert warned.allowed
    assert warned.warnings


def test_a_policy_says_where_and_what_one_writer_is() -> None:
    assert verdict_of(review(RENEWAL), "{suffix: 1a2b3c4d, namespaces: [shop], writer: user}").allowed
    elsewhere = verdict_of(review(RENEWAL), "{suffix: 1a2b3c4d, namespaces: [payments]}")
    assert "foreign-writer" not in {one.rule for one in elsewhere.findings}


WORDING = [
    pytest.param(
        "foreign-writer",
        update(wording.RENEWAL, old=wording.STAMPED),
        (
            'spec: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" and was last written by '
            '"uid system:serviceaccount:shop:checkout", which this writer is not; retry in 11 s, or ask the holder to '
            "release it"
        ),
        (
            'lease "shop/checkout" was written by a writer other than that of "checkout-6d5f9c-x2x8p_1f0e" 11 s before '
            "expiry: there may be two leaders"
        ),
        id="a renewal by another writer",
    ),
    pytest.param(
        "foreign-writer",
        review(*TAKEOVER, old=stamped(HOLDER, -20), stamp=stamped(OTHER, None)),
        (
            'spec: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" and was last written by '
            f'"{HOLDER}", which this writer is not; retry without managedFields, or ask the holder to release it'
        ),
        (
            'lease "shop/checkout" was written by a writer other than that of "checkout-6d5f9c-x2x8p_1f0e" at an '
            "unknown time: there may be two leaders"
        ),
        id="an undated takeover of a lease that has expired by our clock",
    ),
    pytest.param(
        "foreign-writer",
        deleted(old=wording.STAMPED),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" and was last written by '
            '"uid system:serviceaccount:shop:checkout", which this writer is not; retry in 11 s, or ask the holder to '
            "release it"
        ),
        (
            'lease "shop/checkout" was deleted, held by "checkout-6d5f9c-x2x8p_1f0e", 11 s before expiry: there may be '
            "two leaders"
        ),
        id="a deletion by another writer",
    ),
]

WRITES_IT_SPEAKS_OF = {
    "foreign-writer": [update(put("metadata.ownerReferences", [wording.OWNER]), old=wording.STAMPED)],
}
