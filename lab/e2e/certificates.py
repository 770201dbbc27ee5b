"""Certificates of the control plane and of the users that it knows."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOUR = dt.timedelta(hours=1)


class Authority:
    """A certificate authority for one run. Files go to `directory`."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.file = directory / f"{name}.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _start_certificate(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(_encode_certificate(builder.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        *,
        organizations: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> tuple[Path, Path]:
        """Return (certificate file, key file) for a user (`name`, `organizations` = groups) or a server (`hosts`)."""
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, name)]
            + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
        )
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _start_certificate(subject, self._name, key.public_key())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_parse_host(host) for host in hosts]), critical=False
            )
        stem = name.replace(":", "_").replace("/", "_")
        certificate, private = self.directory / f"{stem}.crt", self.directory / f"{stem}.key"
        certificate.write_bytes(_encode_certificate(builder.sign(self._key, hashes.SHA256())))
        private.write_bytes(encode_private_key(key))
        return certificate, private


def encode_private_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as unencrypted PKCS#8."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def encode_public_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the public half of the key."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _start_certificate(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=public)
    return (
        builder.serial_number(x509.random_serial_number()).not_valid_before(now - HOUR).not_valid_after(now + 48 * HOUR)
    )


def _parse_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encode_certificate(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
