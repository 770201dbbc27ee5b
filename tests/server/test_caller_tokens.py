"""Tokens of API servers: what is accepted, what is refused, and keys that change."""

import hmac
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.factories import make_review, to_bytes
from tests.server.harness import make_certificates, running
from webhook.cli.main import main
from webhook.server import caller_tokens
from webhook.server.caller_tokens import CallerTokens, KeysError
from webhook.server.http.message import NO_HEAD, Head, RefusedError

ISSUER = "https://kubernetes.default.svc"
AUDIENCE = "https://lease-webhook.lease-webhook.svc:443/validate"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
REVIEW = to_bytes(make_review())
Claims = dict[str, Any]


def key_set(*, rsa_id: str = "rsa") -> dict[str, Any]:
    """As `kubectl get --raw /openid/v1/jwks` prints it."""
    of_rsa = RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True)
    of_ec = ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True)
    return {
        "keys": [
            of_rsa | {"use": "sig", "alg": "RS256", "kid": rsa_id},
            of_ec | {"use": "sig", "alg": "ES256", "kid": "ec"},
        ]
    }


def claims() -> Claims:
    """As kube-apiserver 1.37 issues them."""
    now = int(time.time())
    return {
        "aud": [AUDIENCE],
        "exp": now + 600,
        "iat": now,
        "iss": ISSUER,
        "jti": "4d2b2f4e-7a53-4b0c-8d0f-5a9a5e0f7a11",
        "kubernetes.io": {
            "attestations": {"admissionReviewAPIGroups": ["coordination.k8s.io"]},
            "namespace": "kube-system",
            "serviceaccount": {"name": "api-server", "uid": "0b1c"},
            "validatingwebhookconfiguration": {"name": "lease-webhook", "uid": "7c52"},
        },
        "nbf": now,
        "sub": "system:serviceaccount:kube-system:api-server",
    }


def signed(payload: Claims, key: Any = RSA_KEY, algorithm: str = "RS256", kid: str | None = "rsa") -> str:
    return jwt.encode(payload, key, algorithm, headers={"kid": kid} if kid else None)


def bearing(value: str) -> Head:
    return NO_HEAD._replace(fields={b"authorization": value.encode()})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(key_set()))
    return path


@pytest.fixture
def tokens(file: Path) -> CallerTokens:
    return CallerTokens(file, ISSUER, AUDIENCE)


def refusal(tokens: CallerTokens, value: str) -> tuple[int, str]:
    with pytest.raises(RefusedError) as refused:
        tokens.accept(bearing(value))
    return refused.value.response.status, refused.value.reason


def private(payload: Claims) -> Claims:
    found: Claims = payload["kubernetes.io"]
    return found


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"), [("RS256", RSA_KEY, "rsa"), ("ES256", EC_KEY, "ec")], ids=["RSA", "elliptic curve"]
)
def test_a_token_of_the_api_server_is_accepted(tokens: CallerTokens, algorithm: str, key: Any, kid: str) -> None:
    tokens.accept(bearing(f"Bearer {signed(claims(), key, algorithm, kid)}"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda made: made.update(aud=AUDIENCE), id="one audience as text"),
        pytest.param(lambda made: made.update(aud=["x", AUDIENCE]), id="among other audiences"),
        pytest.param(lambda made: made.update(nbf=made["nbf"] + 20, iat=made["iat"] + 20), id="a clock 20 s ahead"),
        pytest.param(
            lambda made: private(made)["attestations"].update(admissionReviewAPIGroups=["*"]), id="every API group"
        ),
    ],
)
def test_what_does_not_matter(tokens: CallerTokens, change: Callable[[Claims], None]) -> None:
    made = claims()
    change(made)
    tokens.accept(bearing(f"bearer {signed(made)}"))


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        pytest.param(lambda made: made.update(aud=["x"]), 401, "the token is for another audience", id="audience"),
        pytest.param(lambda made: made.update(iss="x"), 401, "the token has another issuer", id="issuer"),
        pytest.param(lambda made: made.update(exp=made["exp"] - 700), 401, "the token has expired", id="expired"),
        pytest.param(lambda made: made.update(nbf=made["nbf"] + 90), 401, "the token is not valid yet", id="not yet"),
        pytest.param(lambda made: made.update(exp=10**400), 401, "not an API server's token", id="an end without end"),
        pytest.param(lambda made: made.pop("exp"), 401, "not an API server's token", id="without an end"),
        pytest.param(lambda made: made.pop("aud"), 401, "not an API server's token", id="for everybody"),
        pytest.param(lambda made: made.pop("kubernetes.io"), 403, None, id="of another issuer's making"),
        pytest.param(lambda made: made.update({"kubernetes.io": []}), 403, None, id="a list of private claims"),
        pytest.param(lambda made: private(made).pop("attestations"), 403, None, id="without attestations"),
        pytest.param(lambda made: private(made).update(attestations=["coordination.k8s.io"]), 403, None, id="a list"),
        pytest.param(
            lambda made: private(made).update(attestations={"admissionReviewAPIGroups": "coordination.k8s.io"}),
            403,
            None,
            id="a group as text",
        ),
        pytest.param(
            lambda made: private(made)["attestations"].update(admissionReviewAPIGroups=["apps"]),
            403,
            None,
            id="for another API group",
        ),
        pytest.param(
            lambda made: private(made).update(
                mutatingwebhookconfiguration=private(made).pop("validatingwebhookconfiguration")
            ),
            403,
            None,
            id="bound to a mutating webhook",
        ),
        pytest.param(
            lambda made: private(made).update(pod=private(made).pop("validatingwebhookconfiguration")),
            403,
            None,
            id="bound to a pod",
        ),
    ],
)
def test_a_token_with_one_thing_wrong_is_refused(
    tokens: CallerTokens, change: Callable[[Claims], object], status: int, reason: str | None
) -> None:
    made = claims()
    change(made)
    expected = reason or "the token is not bound to a webhook configuration for this API group"
    assert refusal(tokens, f"Bearer {signed(made)}") == (status, expected)


def hmac_with_the_public_key() -> str:
    """The classic confusion: what verifies RSA, taken for a shared secret."""
    public = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "rsa"}, claims())]
    message = b".".join(jwt.utils.base64url_encode(part) for part in parts)
    return b".".join([message, jwt.utils.base64url_encode(hmac.digest(public, message, "sha256"))]).decode()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param("", "a token of the API server is needed", id="nothing"),
        pytest.param("Basic YTpi", "a token of the API server is needed", id="another scheme"),
        pytest.param("Bearer", None, id="an empty token"),
        pytest.param(f"Bearer {signed(claims(), kid='x')}", "the token is signed by an unknown key", id="unknown key"),
        pytest.param(f"Bearer {signed(claims(), kid=None)}", "the token is signed by an unknown key", id="no key"),
        pytest.param(f"Bearer {signed(claims(), OTHER_KEY)}", "the token has a wrong signature", id="forged"),
        pytest.param(f"Bearer {signed(claims(), '', 'none')}", None, id="not signed"),
        pytest.param(f"Bearer {signed(claims(), EC_KEY, 'ES256')}", None, id="another algorithm than its key's"),
        pytest.param(f"Bearer {signed(claims(), RSA_KEY, 'RS512')}", None, id="a longer digest than its key's"),
        pytest.param(f"Bearer {signed(claims())}=", None, id="another text with the same signature"),
        pytest.param(
            f"Bearer {signed(claims()).rpartition('.')[0]}.", "the token has a wrong signature", id="no signature"
        ),
        pytest.param(f"Bearer {hmac_with_the_public_key()}", None, id="an HMAC with the public key"),
        pytest.param(f"Bearer  {signed(claims())}", None, id="two spaces"),
        pytest.param(f"Bearer {signed(claims() | {'jti': 'x' * 8192})}", None, id="a token of more than 8 KiB"),
    ],
)
def test_what_is_no_such_token_is_refused(tokens: CallerTokens, value: str, reason: str | None) -> None:
    assert refusal(tokens, value) == (401, reason or "not an API server's token")


@given(st.binary(max_size=60) | st.lists(st.binary(max_size=20).map(jwt.utils.base64url_encode)).map(b".".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_break_it(tokens: CallerTokens, value: bytes) -> None:
    with pytest.raises(RefusedError):
        tokens.accept(NO_HEAD._replace(fields={b"authorization": b"Bearer " + value}))


@pytest.mark.parametrize("head", [b"[" * 20_000, b'{"a":' * 20_000, b"1" * 20_000, b'{"kid":{}}', b'{"kid":1}', b"0"])
def test_no_head_of_a_token_breaks_it(tokens: CallerTokens, head: bytes) -> None:
    value = b".".join([jwt.utils.base64url_encode(head), b"e30", b"AA"]).decode()
    assert refusal(tokens, f"Bearer {value}")[0] == 401


def test_a_verified_token_is_remembered_until_it_ends(tokens: CallerTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    head = bearing(f"Bearer {signed(claims())}")
    tokens.accept(head)
    monkeypatch.setattr(tokens, "_keys", {})
    tokens.accept(head)
    ends = time.time() + 601
    monkeypatch.setattr(time, "time", lambda: ends)
    with pytest.raises(RefusedError):
        tokens.accept(head)


def test_only_so_many_tokens_are_remembered(tokens: CallerTokens) -> None:
    for number in range(caller_tokens.MAX_VERIFIED + 5):
        tokens.accept(bearing(f"Bearer {signed(claims() | {'jti': str(number)})}"))
    assert len(tokens._verified) == caller_tokens.MAX_VERIFIED


def test_keys_change_and_a_removed_one_counts_no_more(tokens: CallerTokens, file: Path) -> None:
    head = bearing(f"Bearer {signed(claims())}")
    tokens.accept(head)
    assert tokens.poll() is None
    file.write_text(json.dumps(key_set(rsa_id="new")))
    assert tokens.poll() == "success"
    with pytest.raises(RefusedError):
        tokens.accept(head)
    tokens.accept(bearing(f"Bearer {signed(claims(), kid='new')}"))


def test_the_last_good_keys_stay(tokens: CallerTokens, file: Path) -> None:
    good = file.read_text()
    file.write_text("{}")
    assert (tokens.poll(), bool(tokens.error)) == ("failure", True)
    assert tokens.poll() is None
    file.unlink()
    assert (tokens.poll(), tokens.error) == ("failure", f"{file}: No such file or directory")
    tokens.accept(bearing(f"Bearer {signed(claims())}"))
    file.write_text(good)
    assert (tokens.poll(), tokens.error) == ("success", "")
    assert tokens.poll() is None


def test_a_pipe_in_place_of_the_keys_is_refused_and_not_waited_for(tokens: CallerTokens, file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    assert (tokens.poll(), tokens.error) == ("failure", f"{file}: not a file")


def key_sets(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["keys", "kty", "alg", "crv", "n", "e", "x", "y", "k", "kid"])
    return st.lists(below, max_size=3) | st.dictionaries(names, below)


WORDS = st.sampled_from(["RSA", "EC", "OKP", "oct", "P-256", "RS256", "none", "AQAB", ""])
JSON = st.recursive(st.none() | WORDS | st.integers(), key_sets).map(lambda value: json.dumps(value).encode())


@given(st.binary(max_size=100) | JSON)
def test_any_file_gives_keys_or_a_reason(content: bytes) -> None:
    with pytest.raises(KeysError):
        caller_tokens._keys(content)


def key_of_rsa(**changes: Any) -> bytes:
    """A set of one key, with something changed."""
    return json.dumps({"keys": [key_set()["keys"][0] | changes]}).encode()


def test_a_private_key_is_refused() -> None:
    """With it whoever reads the file signs tokens of every service account."""
    for private in (RSAAlgorithm.to_jwk(RSA_KEY, as_dict=True), ECAlgorithm.to_jwk(EC_KEY, as_dict=True)):
        content = json.dumps({"keys": [private | {"kid": "private"}, *key_set()["keys"]]})
        with pytest.raises(KeysError, match="private key"):
            caller_tokens._keys(content.encode())


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"kid": ["rsa"]}, id="an id that is a list"),
        pytest.param({"kid": 1}, id="an id that is a number"),
        pytest.param({"kid": ""}, id="an empty id"),
        pytest.param({"use": "enc"}, id="for encryption"),
        pytest.param({"use": ["sig"]}, id="a use that is a list"),
    ],
)
def test_a_key_that_no_token_can_be_verified_by(changes: dict[str, Any]) -> None:
    with pytest.raises(KeysError, match="no key with an id"):
        caller_tokens._keys(key_of_rsa(**changes))
    assert caller_tokens._keys(key_of_rsa(use=None)).keys() == {"rsa"}


def test_a_curve_that_this_computer_lacks_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise UnsupportedAlgorithm("curve secp256k1 is not supported")

    monkeypatch.setattr(jwt.PyJWKSet, "from_dict", refuse)
    with pytest.raises(KeysError, match="secp256k1"):
        caller_tokens._keys(b"{}")


def test_a_shared_secret_is_not_a_key() -> None:
    with pytest.raises(KeysError, match="no key with an id"):
        caller_tokens._keys(b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "a"}]}')


def test_reviews_need_the_token_and_probes_do_not(tmp_path: Path, file: Path) -> None:
    make_certificates(tmp_path)
    options = {"token_keys": str(file), "token_issuer": ISSUER, "token_audience": AUDIENCE}
    with running(tmp_path, **options) as server:
        assert server.post(REVIEW) == (401, b"a token of the API server is needed\n")
        connection = server.connect()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {signed(claims())}"}
        connection.request("POST", "/validate", REVIEW, headers)
        assert connection.getresponse().status == 200
        connection.close()
        assert server.probe("/readyz")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--token-issuer", ISSUER], "need each other", id="an issuer alone"),
        pytest.param(
            ["--token-keys", "/nowhere", "--token-issuer", ISSUER, "--token-audience", AUDIENCE],
            "no keys to verify tokens with: /nowhere: No such file or directory",
            id="no file",
        ),
    ],
)
def test_serve_refuses_to_start(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert words in capsys.readouterr().err
