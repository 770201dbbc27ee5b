"""Tokens that authenticate the API server to a webhook (KEP-6060, Kubernetes 1.37), verified without a call.

A token is a JWT that the API server signed with its key for service accounts. It is bound to a webhook configuration
and states for which API groups its bearer sends reviews.
"""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.types import Options as Checks

from webhook.api.request import GROUP
from webhook.server.http.message import Head, RefusedError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
"""Only asymmetric ones: what verifies must not be able to sign."""
LEEWAY_SECONDS: Final = 30
"""By how much the clocks of API server and webhook may differ."""
MAX_FILE: Final = 1024 * 1024
MAX_TOKEN: Final = 8 * 1024
"""Bytes; those of an API server have less than two thousand. PyJWT looks at each byte, and a head may have 64 KiB."""
MAX_VERIFIED: Final = 64
"""Tokens that are remembered, so that a signature is not verified for each review. An API server has one at a time."""
CHALLENGE: Final = b"www-authenticate: Bearer\r\n"
_CHECKS: Final[Checks] = {"require": ["aud", "exp", "iat", "iss", "sub"]}
_REFUSED: Final = "not an API server's token"
_REASONS: Final[dict[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token has another issuer",
    jwt.InvalidSignatureError: "the token has a wrong signature",
}


class KeysError(ValueError):
    """A file of keys that cannot be used; the text says why."""


class CallerTokens:
    """Accepts tokens of one issuer, for one audience, signed by a key in a file (JWKS) that may change."""

    def __init__(self, file: Path, issuer: str, audience: str) -> None:
        """Read the keys; raises KeysError."""
        self._file = file
        self._decode = partial(jwt.decode, options=_CHECKS, audience=audience, issuer=issuer, leeway=LEEWAY_SECONDS)
        self._content = self._read()
        self._keys = _keys(self._content)
        self._verified: dict[bytes, float] = {}
        self.error = ""

    def poll(self) -> str | None:
        """Take changed keys; the last good ones stay if the file is bad, and `error` says so.

        Gives "success" or "failure" if something has changed, a bad file that is good again too, else None.
        """
        before = self.error
        try:
            content = self._read()
            if content == self._content and not before:
                return None
            self._keys, self._content, self.error = _keys(content), content, ""
        except KeysError as error:
            self.error = str(error)
            return "failure" if self.error != before else None
        self._verified.clear()  # a removed key makes its tokens invalid
        return "success"

    def accept(self, head: Head) -> None:
        """Raise RefusedError unless the head has a valid token of an API server."""
        scheme, _, token = head.fields.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise RefusedError(401, "a token of the API server is needed", CHALLENGE)
        if time.time() < self._verified.get(token, 0):
            return
        if len(token) > MAX_TOKEN:
            raise RefusedError(401, _REFUSED, CHALLENGE)
        ends = self._verify(token)
        if len(self._verified) >= MAX_VERIFIED:
            del self._verified[next(iter(self._verified))]
        self._verified[token] = ends

    def _verify(self, token: bytes) -> float:
        """Return the expiry of a token, in Unix seconds; raises RefusedError."""
        try:
            key = self._keys.get(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                raise RefusedError(401, "the token is signed by an unknown key", CHALLENGE)
            claims = self._decode(token, key, [key.algorithm_name])
            ends = float(claims["exp"])
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError) as error:
            reason = _REASONS.get(type(error), _REFUSED)
            raise RefusedError(401, reason, CHALLENGE) from error
        if not _is_bound(claims.get("kubernetes.io")):
            raise RefusedError(403, "the token is not bound to a webhook configuration for this API group")
        return ends

    def _read(self) -> bytes:
        try:
            if self._file.exists() and not self._file.is_file():
                raise KeysError(f"{self._file}: not a file")  # to open a pipe would wait for a writer
            with self._file.open("rb") as file:
                return file.read(MAX_FILE)
        except OSError as error:
            raise KeysError(f"{self._file}: {error.strerror}") from error


def _keys(content: bytes) -> dict[str, jwt.PyJWK]:
    """The keys by their ids; raises KeysError if there is none that verifies."""
    try:
        listed = jwt.PyJWKSet.from_dict(json.loads(content)).keys
    except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise KeysError(f"not a JSON Web Key Set, as `kubectl get --raw /openid/v1/jwks` prints it: {error}") from error
    if any(isinstance(key.key, RSAPrivateKey | EllipticCurvePrivateKey) for key in listed):
        raise KeysError("the key set has a private key, with which tokens can be signed; give it public keys only")
    keys = {
        key.key_id: key
        for key in listed
        if isinstance(key.key_id, str) and key.key_id and key.algorithm_name in ALGORITHMS
        if key.public_key_use in (None, "sig")
    }
    if not keys:
        raise KeysError(f"the key set has no key with an id for {', '.join(ALGORITHMS)}")
    return keys


def _is_bound(claims: Any) -> bool:  # noqa: ANN401 - whatever the token says
    """Return whether the private claims name a validating webhook configuration, and our API group or all."""
    try:
        groups = claims["attestations"]["admissionReviewAPIGroups"]
        return bool(claims["validatingwebhookconfiguration"]["uid"]) and not {GROUP, "*"}.isdisjoint(groups)
    except (KeyError, TypeError, IndexError):
        return False
