"""deploy/protect with a kubectl that answers from files; `make e2e E2E="--only stamp"` shows what the policies do."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.sources import DEPLOY
from webhook.admission.policy.parse import parse

SUFFIX = "1a2b3c4d5e6f7a8b"
KUBECTL = """\
#!/bin/sh
echo "$1 $2 $3" >> calls
[ -z "$BROKEN" ] || case "$*" in $BROKEN) echo "Error from server (Timeout)" >&2 && exit 1 ;; esac
case "$*" in
"get --raw "*) cat served ;;
*stamp-adopters*) cat adopters ;;
"get namespace shop "*) cat label ;;
"get namespace "*) echo NotFound >&2 && exit 1 ;;
"get mutatingadmissionpolicies "*) cat suffix ;;
"get mutatingadmissionpolicybindings "*) cat binding ;;
*ownerReferences*) cat owners ;;
"get validatingwebhookconfigurations "*) cat webhooks ;;
*" get leases "*"[*]"*) cat unlabeled ;;
*" get leases "*) cat held ;;
*" annotate "*) cat kept > unlabeled ;;
"get namespaces "*"--output name") cat labeled ;;
"get namespaces "*) cat namespaces ;;
kustomize*) echo "  expression: SUFFIX" ;;
apply*) cat > applied ;;
"label namespace shoop "*) echo NotFound >&2 && exit 1 ;;
esac
"""
CLOCK = """\
#!/bin/sh
echo . >> minutes
echo $(($(wc -l < minutes) * 10))
"""
NEW = '"mutatingadmissionpolicies" "mutatingadmissionpolicybindings" '
OLD = '"validatingadmissionpolicies" "validatingadmissionpolicybindings"'
LATER = "1970-01-02T00:00:00.000000Z"
"""Later than the clock, which begins in 1970."""
STAMPED = f"db {LATER} 15 uid-1 system:serviceaccount:shop:db\n"
UNSTAMPED = f"db {LATER} 15 \n"
SILENT = "shift 1969-12-31T23:59:00.000000Z 3600 \nfrozen 9999-12-31T23:59:59.000000Z 15 \n"
"""Neither expired nor renewed."""
EXPIRED = "old 1969-12-31T23:59:00.000000Z 15 \ndead   \n"
PLANTED = f'db {{"lease-webhook/writer-{SUFFIX}":"- mallory"}}\n'
FOUND = {
    "served": NEW + OLD,
    "label": "",
    "adopters": "",
    "owners": "",
    "webhooks": "",
    "suffix": f"'{SUFFIX}'",
    "binding": "lease-webhook-stamp\n",
    "unlabeled": "",
    "kept": "",
    "held": STAMPED,
    "labeled": "namespace/shop\n",
    "namespaces": "".join(
        f'- suffix: "{SUFFIX}"\n  namespaces: ["{name}"]\n  writer: {writer}\n'
        for name, writer in (("shop", ""), ("on", "user"))
    ),
}
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run it in a cluster where the policies are applied, but for what is given; calls that match `broken` fail."""

    def protect(*words: str, broken: str = "", **answers: str) -> "subprocess.CompletedProcess[str]":
        for name, text in {"calls": "", "applied": "", **FOUND, **answers}.items():
            (tmp_path / name).write_text(text)
        for name, text in (("kubectl", KUBECTL), ("date", CLOCK), ("sleep", "#!/bin/sh\n")):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        environment = {**os.environ, "BROKEN": broken, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", str(DEPLOY / "protect"), *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return protect


def changes(directory: Path) -> list[str]:
    """The first word of each call that changes the cluster."""
    verbs = [line.split()[0] for line in (directory / "calls").read_text().splitlines()]
    return [verb for verb in verbs if verb not in {"get", "kustomize", "--namespace"}]


@pytest.mark.parametrize("words", [[], ["--help"], ["-n"], [""], ["shop", "--delete"], ["shop", "--remove", "other"]])
def test_wrong_usage_asks_no_cluster(words: list[str], run: Run, tmp_path: Path) -> None:
    done = run(*words)
    assert (done.returncode, (tmp_path / "calls").read_text()) == (2, "")
    assert done.stderr.startswith("usage: ")


@pytest.mark.parametrize(
    ("name", "answers", "message"),
    [
        pytest.param("shoop", {}, "NotFound", id="there is no such namespace"),
        pytest.param("shop", {"served": OLD}, "needs Kubernetes 1.36", id="an older API server"),
    ],
)
def test_what_cannot_be_protected_changes_nothing(
    name: str, answers: dict[str, str], message: str, run: Run, tmp_path: Path
) -> None:
    done = run(name, **answers)
    assert (done.returncode, changes(tmp_path)) == (1, [])
    assert message in done.stderr


def test_it_prints_a_policy_file_and_nothing_else(run: Run) -> None:
    done = run("shop")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 live leases have a stamp." in done.stderr
    stamps = parse(done.stdout).stamps
    assert {name: (one.suffix, one.by_user) for name, one in stamps.items()} == {
        "shop": (SUFFIX, False),
        "on": (SUFFIX, True),
    }


def test_a_namespace_that_is_labeled_gets_what_is_missing(run: Run, tmp_path: Path) -> None:
    assert run("shop", label="required", unlabeled=PLANTED).returncode == 0
    assert changes(tmp_path) == ["apply"]
    assert (tmp_path / "applied").read_text() == f"  expression: \"'{SUFFIX}'\"\n"


@pytest.mark.parametrize("missing", [{"suffix": ""}, {"binding": ""}], ids=["policy", "binding"])
def test_the_suffix_is_new_if_nothing_stamped_meanwhile(missing: dict[str, str], run: Run, tmp_path: Path) -> None:
    run("shop", label="required", **missing)
    applied = (tmp_path / "applied").read_text()
    assert applied.startswith("  expression: \"'")
    assert SUFFIX not in applied


def test_a_namespace_is_pending_before_its_leases_are_looked_at(run: Run, tmp_path: Path) -> None:
    assert run("shop").returncode == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [line for line in calls if line.startswith(("label", "--namespace"))][:2] == [
        "label --overwrite namespace",
        "--namespace shop get",
    ]
    assert changes(tmp_path) == ["apply", "label", "label"]


def test_what_was_planted_is_removed_before_it_counts(run: Run, tmp_path: Path) -> None:
    done = run("shop", unlabeled=f'good {{"a":"\\"lease-webhook/term-{SUFFIX}\\":"}}\n' + PLANTED)
    assert done.returncode == 0, done.stderr
    annotated = [line for line in (tmp_path / "calls").read_text().splitlines() if line.endswith("annotate")]
    assert annotated == ["--namespace shop annotate"]
    assert changes(tmp_path) == ["apply", "label", "label"]


def test_a_name_that_nothing_reads_as_a_stamp_does_not_keep_a_namespace_unprotected(run: Run, tmp_path: Path) -> None:
    """Nothing removes it, so whoever may write one lease could keep all leases of the namespace without stamps."""
    other = f'db {{"lease-webhook/x-{SUFFIX}":"y"}}\n'
    done = run("shop", unlabeled=other, kept=other)
    assert done.returncode == 0, done.stderr
    assert changes(tmp_path) == ["apply", "label", "label"]


def test_what_cannot_be_removed_leaves_the_namespace_pending(run: Run, tmp_path: Path) -> None:
    done = run("shop", unlabeled=PLANTED, kept=PLANTED)
    assert (done.returncode, changes(tmp_path)) == (1, ["apply", "label"])
    assert "anyone may have written them: db \n" in done.stderr


@pytest.mark.parametrize(
    ("broken", "changed"),
    [
        pytest.param("kustomize*", [], id="the policies"),
        pytest.param("*annotations}*", ["apply", "label"], id="what was planted"),
        pytest.param("*holderIdentity*", ["apply", "label", "label"], id="who holds the leases"),
        pytest.param("*stamp-adopters*", ["apply", "label"], id="who may set owners"),
        pytest.param("*ownerReferences*", ["apply", "label"], id="the owners"),
        pytest.param(
            "get validatingwebhookconfigurations *", ["apply", "label", "label"], id="whether a webhook is there"
        ),
        pytest.param("get namespaces *", ["apply", "label", "label"], id="the namespaces of the policy file"),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_nothing(
    broken: str, changed: list[str], run: Run, tmp_path: Path
) -> None:
    done = run("shop", broken=broken)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert (changes(tmp_path), done.stdout) == (changed, "")


def test_a_suffix_that_everyone_can_guess_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "od").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "od").chmod(0o755)
    done = run("shop", suffix="")
    assert (done.returncode, changes(tmp_path)) == (1, [])
    assert "8 to 32" in done.stderr


@pytest.mark.parametrize("held", [UNSTAMPED, "db  \n"], ids=["written by an administrator or not renewed", "a lease"])
def test_it_waits_for_stamps_and_not_for_ever(held: str, run: Run) -> None:
    done = run("shop", held=STAMPED.replace("db", "a", 1) + held)
    assert done.returncode == 0
    waits = held == UNSTAMPED
    assert ("1 of 2 live leases have a stamp." in done.stderr) == waits
    assert ("can take these: db \n" in done.stderr) == waits


def test_an_expired_lease_is_neither_waited_for_nor_held(run: Run, tmp_path: Path) -> None:
    done = run("shop", held=STAMPED + EXPIRED)
    assert done.returncode == 0
    assert "1 of 1 live leases have a stamp." in done.stderr
    assert "Expired, so whoever takes them is stamped then: old dead \n" in done.stderr
    assert (tmp_path / "minutes").read_text().count(".") <= 3


def test_a_holder_that_does_not_renew_is_not_waited_for_and_is_named(run: Run, tmp_path: Path) -> None:
    done = run("shop", held=STAMPED + SILENT)
    assert done.returncode == 0
    assert "1 of 3 live leases have a stamp." in done.stderr
    assert "can take these: shift frozen \n" in done.stderr
    assert (tmp_path / "minutes").read_text().count(".") <= 3


def test_who_writes_without_a_pod_is_named(run: Run) -> None:
    done = run("shop", held=STAMPED + f"outside {LATER} 15 - jane doe\n")
    assert "2 of 2 live leases have a stamp." in done.stderr
    assert "whoever is that user may write them: outside \n" in done.stderr


@pytest.mark.parametrize(
    ("webhooks", "is_told"),
    [("", False), ("validatingwebhookconfiguration.admissionregistration.k8s.io/lease-webhook\n", True)],
    ids=["no webhook", "a webhook"],
)
def test_a_webhook_that_is_installed_needs_the_stamps_too(webhooks: str, is_told: bool, run: Run) -> None:
    assert ("add the stamps below to its policy" in run("shop", webhooks=webhooks).stderr) == is_told


@pytest.mark.parametrize(
    ("words", "answers", "code", "deleted"),
    [
        pytest.param("shop", {}, 0, 0, id="another namespace is labeled"),
        pytest.param("shoop", {}, 1, 0, id="a mistake, while one is labeled"),
        pytest.param("shop", {"labeled": ""}, 0, 2, id="no other is labeled"),
        pytest.param("shoop", {"labeled": ""}, 0, 2, id="a namespace that is gone"),
        pytest.param("shop", {"labeled": "", "served": OLD}, 0, 1, id="an older API server"),
    ],
)
def test_the_policies_are_removed_if_no_namespace_is_labeled(
    words: str, answers: dict[str, str], code: int, deleted: int, run: Run, tmp_path: Path
) -> None:
    assert run(words, "--remove", **answers).returncode == code
    assert changes(tmp_path) == ["label", *["delete"] * deleted]


OWNERS = "db true\nother false\ntwo false true\nthree \n"
"""The names of leases that have an owner, and of each owner whether it is the controller."""


def test_it_warns_of_owners_that_an_operator_sets(run: Run) -> None:
    """A takeover removes them, and nobody else than the holder may put them back, unless the namespace names it."""
    text = "or it is refused: db two \n"
    assert text in run("shop", owners=OWNERS).stderr
    assert "or it is refused" not in run("shop").stderr
    assert "or it is refused" not in run("shop", owners="other false\nthree \n").stderr
    assert "or it is refused" not in run("shop", owners=OWNERS, adopters="system:serviceaccount:a:b").stderr


@pytest.mark.parametrize("label", ["", "required"])
@pytest.mark.parametrize("adopters", ["", "system:serviceaccount:a:b"])
def test_it_names_each_lease_with_an_owner_that_a_plugin_of_the_api_server_may_defend(
    adopters: str, label: str, run: Run
) -> None:
    """Whoever names an operator for its leases needs the right to delete them all the same."""
    said = run("shop", owners=OWNERS, adopters=adopters, label=label).stderr
    assert "with the tenure of their holder: db other two three \n" in said
    assert "OwnerReferencesPermissionEnforcement" in said
    assert "get lease db --output json" in said
    assert "OwnerReferencesPermissionEnforcement" not in run("shop", adopters=adopters, label=label).stderr


def test_owners_are_named_before_anything_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("shop", owners=OWNERS, broken="label --overwrite namespace shop lease-webhook/stamp=required")
    assert (done.returncode, changes(tmp_path)) == (1, ["apply", "label", "label"])
    assert "These have an owner" in done.stderr
