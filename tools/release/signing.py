"""Signatures and provenance of files by a key, in Sigstore's bundles.

A release gets them from the identity of its workflow, which a rehearsal does not have. The forms are the same, so what
verifies a release verifies these: a bundle of version 0.3 with a signature of the file, and one with an in-toto
statement about all files (SLSA provenance, version 1).
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT: Final = "application/vnd.in-toto+json"
Key = ec.EllipticCurvePrivateKey


def generate_key() -> Key:
    """Return a new key, of the kind that Sigstore's clients use."""
    return ec.generate_private_key(ec.SECP256R1())


def make_public_pem(key: Key) -> bytes:
    """Return the public half, as verifiers read it."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def make_signature_bundle(key: Key, content: bytes) -> str:
    """Return the bundle with a signature of some bytes."""
    digest = {"algorithm": "SHA2_256", "digest": _encode(hashlib.sha256(content).digest())}
    return _make_bundle(key, {"messageSignature": {"messageDigest": digest, "signature": _sign(key, content)}})


def make_statement_bundle(key: Key, statement: dict[str, Any]) -> str:
    """Return the bundle with a signed statement (DSSE)."""
    payload = json.dumps(statement, sort_keys=True).encode()
    head = f"DSSEv1 {len(STATEMENT)} {STATEMENT} {len(payload)} ".encode()
    signatures = [{"sig": _sign(key, head + payload), "keyid": ""}]
    envelope = {"payload": _encode(payload), "payloadType": STATEMENT, "signatures": signatures}
    return _make_bundle(key, {"dsseEnvelope": envelope})


def make_provenance(files: Iterable[Path], repository: str, commit: str) -> dict[str, Any]:
    """Return the in-toto statement that these files were built from a commit of a repository."""
    subjects = [
        {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}} for file in files
    ]
    source = {"uri": f"git+{repository}", "digest": {"gitCommit": commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{repository}/make-rehearsal",
                "externalParameters": {"repository": repository, "commit": commit},
                "resolvedDependencies": [source],
            },
            "runDetails": {"builder": {"id": f"{repository}/rehearsal"}},
        },
    }


def _make_bundle(key: Key, content: dict[str, Any]) -> str:
    hint = _encode(hashlib.sha256(make_public_pem(key)).digest())
    return json.dumps({"mediaType": MEDIA_TYPE, "verificationMaterial": {"publicKey": {"hint": hint}}, **content})


def _sign(key: Key, data: bytes) -> str:
    return _encode(key.sign(data, ec.ECDSA(hashes.SHA256())))


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
