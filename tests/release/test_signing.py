"""Bundles by a key: what is signed is what a verifier computes again; `make rehearsal` has sigstore-go verify them."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tools.release.signing import (
    STATEMENT,
    generate_key,
    make_provenance,
    make_public_pem,
    make_signature_bundle,
    make_statement_bundle,
)

KEY = generate_key()


def verify(signature: str, data: bytes) -> None:
    public = serialization.load_pem_public_key(make_public_pem(KEY))
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(base64.b64decode(signature), data, ec.ECDSA(hashes.SHA256()))


def test_a_file_is_signed_with_its_digest() -> None:
    signed = json.loads(make_signature_bundle(KEY, b"content"))["messageSignature"]
    assert base64.b64decode(signed["messageDigest"]["digest"]) == hashlib.sha256(b"content").digest()
    verify(signed["signature"], b"content")
    with pytest.raises(InvalidSignature):
        verify(signed["signature"], b"another")


def test_a_statement_names_each_file_and_is_signed_with_its_type(tmp_path: Path) -> None:
    (tmp_path / "wheel").write_bytes(b"content")
    statement = make_provenance([tmp_path / "wheel"], "https://git.example/a", "0" * 40)
    envelope = json.loads(make_statement_bundle(KEY, statement))["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    assert json.loads(payload) == statement
    assert statement["subject"] == [{"name": "wheel", "digest": {"sha256": hashlib.sha256(b"content").hexdigest()}}]
    # The pre-authentication encoding of DSSE, version 1.
    signed = b"DSSEv1 %d %s %d %s" % (len(STATEMENT), STATEMENT.encode(), len(payload), payload)
    verify(envelope["signatures"][0]["sig"], signed)
