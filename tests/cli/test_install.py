"""`lease-webhook install`. That it prints what kustomize builds is shown by `make manifests`."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PRESETS
from webhook.cli.main import main
from webhook.text.yaml_reader import LOADER

FILES = {"ca.crt": b"the CA", "tls.crt": b"the leaf", "tls.key": b"the key"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    image = [] if "--policies-only" in arguments else ["--image=registry.example/x:1"]
    code = main(["install", *image, *arguments])
    printed = capsys.readouterr()
    return code, list(yaml.load_all(printed.out, LOADER)), printed.err


def one(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (only,) = [each for each in objects if each["kind"] == kind]
    return only


def test_the_webhook_configuration_comes_last(capsys: pytest.CaptureFixture[str]) -> None:
    code, objects, err = run(capsys, "--certificate=cert-manager", "--component=monitoring")
    assert (code, err) == (0, "")
    assert objects[0]["kind"] == "Namespace"
    assert objects[-1]["kind"] == "ValidatingWebhookConfiguration"


def test_the_image_is_run_by_the_pods(capsys: pytest.CaptureFixture[str]) -> None:
    _, objects, _ = run(capsys, "--certificate=openshift", "--image=registry.example/x@sha256:1")
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/x@sha256:1"


def test_a_certificate_of_files_is_served_and_trusted_by_every_entry(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    flags = ["--component=strict", "--component=bindings", "--component=node-leases", "--component=control-plane"]
    _, objects, _ = run(capsys, "--certificate=self-signed", f"--certs={tmp_path}", *flags)
    assert {name: base64.b64decode(text) for name, text in one(objects, "Secret")["data"].items()} == FILES
    entries = one(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert len(entries) == 5
    assert {base64.b64decode(entry["clientConfig"]["caBundle"]) for entry in entries} == {FILES["ca.crt"]}


def test_a_policy_takes_the_place_of_the_preset(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\npreset: strict  # ours\n")
    _, objects, _ = run(capsys, "--certificate=cert-manager", f"--policy={policy}")
    assert one(objects, "ConfigMap")["data"]["policy.yaml"] == policy.read_text()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("file", [None, "garbage: ["], ids=["no file has its name", "a file has its name"])
def test_a_preset_is_the_policy(
    preset: str, file: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if file is not None:
        Path(preset).write_text(file)
    code, objects, _ = run(capsys, "--certificate=cert-manager", f"--policy={preset}")
    text = one(objects, "ConfigMap")["data"]["policy.yaml"]
    assert (code, parse(text).digest) == (0, load(preset).digest)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbfapiVersion: lease-webhook/v1\n", id="a byte order mark"),
        pytest.param(b"apiVersion: lease-webhook/v1\r\npreset: strict\r\n", id="line ends of Windows"),
        pytest.param("apiVersion: lease-webhook/v1  # für Köln\n".encode(), id="letters that are not ASCII"),
    ],
)
def test_pods_read_the_policy_that_was_checked(
    content: bytes, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_bytes(content)
    _, objects, _ = run(capsys, "--certificate=cert-manager", f"--policy={policy}")
    text = one(objects, "ConfigMap")["data"]["policy.yaml"]
    assert text == content.decode("utf-8-sig").replace("\r\n", "\n")
    assert parse(text).digest == load(str(policy)).digest


def test_the_suffix_of_the_stamps_is_that_of_the_policy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\nstamps: [{suffix: 1a2b3c4d, namespaces: [shop]}]\n")
    _, objects, _ = run(capsys, "--certificate=cert-manager", f"--policy={policy}", "--component=stamp")
    stamping = [each for each in objects if each["metadata"]["name"].startswith("lease-webhook-stamp")]
    assert len(stamping) == 6
    suffixes = [each["spec"]["variables"][0] for each in stamping if "variables" in each["spec"]]
    assert suffixes == [{"name": "suffix", "expression": "'1a2b3c4d'"}] * 3
    assert not [each for each in stamping if "namespace" in each["metadata"]]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param([], "Missing option '--certificate'", id="no certificate"),
        pytest.param(["--certificate=vault"], "'vault' is not one of", id="an unknown certificate"),
        pytest.param(
            ["--certificate=openshift", "--component=loose"], "'loose' is not one of", id="an unknown component"
        ),
        pytest.param(["--certificate=self-signed", "--certs=/nowhere"], "lease-webhook certs /nowhere", id="no files"),
        pytest.param(["--certificate=openshift", "--policy=/nowhere"], "/nowhere", id="no policy"),
        pytest.param(["--certificate=openshift", "--image="], "name the image", id="no image"),
        pytest.param(["--certificate=openshift", "--image=a :1"], "name the image", id="an image with a space"),
        pytest.param(["--certificate=openshift", "--image=x:5000/a"], "name the image", id="an image without version"),
        pytest.param(["--certificate=openshift", "--image=a:latest"], "name the image", id="an image that changes"),
        pytest.param(
            ["--certificate=openshift", "--component=stamp"], "needs a --policy", id="stamps without a suffix"
        ),
        pytest.param(
            ["--certificate=openshift", "--component=observe", "--policy=x"], "brings its own policy", id="two policies"
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--image=registry.example/x:1", *flags]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert complaint in printed.err
    assert printed.err.count("\n") == 1


def test_a_policy_that_is_refused_is_not_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\npreset: lax\n")
    assert main(["install", "--certificate=openshift", "--image=x:1", f"--policy={policy}"]) == 2
    assert not capsys.readouterr().out


def test_policies_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, objects, err = run(capsys, "--policies-only", "--policy=strict")
    assert (code, err) == (0, "")
    assert {each["kind"] for each in objects} == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)
    printed = {each["metadata"]["name"] for each in objects if each["kind"] == "ValidatingAdmissionPolicy"}
    assert printed == {each["spec"]["policyName"] for each in objects if "policyName" in each["spec"]}
    selector = objects[0]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]
    assert selector["values"] == ["kube-system", "kube-node-lease", "kube-public", "lease-webhook"]


def test_policies_of_system_namespaces(capsys: pytest.CaptureFixture[str]) -> None:
    _, objects, _ = run(capsys, "--policies-only", "--component=node-leases", "--component=control-plane")
    selector = objects[0]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]
    assert selector["values"] == ["kube-public", "lease-webhook"]


@pytest.mark.parametrize(("kubernetes", "count"), [("1.35", 0), ("v1.36.3", 9)])
def test_policies_with_stamps(capsys: pytest.CaptureFixture[str], tmp_path: Path, kubernetes: str, count: int) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\nstamps: [{suffix: 1a2b3c4d, namespaces: [shop]}]\n")
    _, objects, _ = run(capsys, "--policies-only", f"--policy={policy}", f"--kubernetes={kubernetes}")
    assert sum(each["metadata"]["name"].startswith("lease-webhook-stamp") for each in objects) == count


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(["--kubernetes=1.29"], "--kubernetes: policies need 1.30 or newer", id="an old API server"),
        pytest.param(["--kubernetes=new"], '--kubernetes: "new" is not a version such as 1.36', id="not a version"),
        pytest.param(["--certificate=openshift"], "--certificate: is about the webhook", id="a certificate"),
        pytest.param(["--image=x:1"], "--image: is about the webhook", id="an image"),
        pytest.param(["--certs=certs"], "--certs: is about the webhook", id="a directory of certificates"),
        pytest.param(["--component=strict"], "--component strict: is about the webhook", id="a component"),
    ],
)
def test_what_policies_cannot_be_printed_for(
    capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    code, objects, err = run(capsys, "--policies-only", *flags)
    assert (code, objects) == (2, [])
    assert problem in err


def test_a_version_of_kubernetes_is_for_policies_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--certificate=cert-manager", "--image=x:1", "--kubernetes=1.36")
    assert (code, "--kubernetes: is for --policies-only" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--policies-only", "strict"], '"strict" is not expected; did you mean --policy strict?'),
        (["--policies-only", "node-leases"], "did you mean --component node-leases?"),
        (["--policies-only", "v1.36.2"], "did you mean --kubernetes v1.36.2?"),
        (["--policies-only", "my policy.yaml"], "did you mean --policy 'my policy.yaml'?"),
        (["--policies-only", "README.md"], "did you mean --policy README.md?"),
        (["--policies-only", "cert-manager"], '"cert-manager" is not expected; install takes options only'),
        (["strict"], "did you mean --component strict?"),
        (["cert-manager"], "did you mean --certificate cert-manager?"),
        (["1.36"], '"1.36" is not expected; install takes options only'),
    ],
    ids=str,
)
def test_an_argument_is_refused_with_the_option_that_takes_it(
    capsys: pytest.CaptureFixture[str], words: list[str], hint: str
) -> None:
    code, objects, err = run(capsys, *words)
    assert (code, objects) == (2, [])
    assert hint in err
