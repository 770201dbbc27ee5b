"""The certificate of a live endpoint, as the API server would see it. The only module of the doctor with I/O."""

import socket
import ssl
from typing import Final

from webhook.doctor.certificate import Served, authorities_pem, server_name
from webhook.doctor.configuration import ClientConfig

TIMEOUT_SECONDS: Final = 5


class Unreachable(Exception):  # noqa: N818 - a finding about the endpoint, shown to the user
    """No TLS handshake was possible; the text says why."""


def inspect_endpoint(host: str, port: int, config: ClientConfig) -> Served:
    """What `host:port` serves to a client that trusts this caBundle and checks the name that the API server checks.

    Raises Unreachable.
    """
    name = server_name(config)
    origin = f"{host}:{port}"
    try:
        leaf = _handshake(host, port, name, _trusting_anything())
        return Served(ssl.DER_cert_to_PEM_cert(leaf).encode(), origin, _distrust(host, port, config))
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"{origin}: no TLS handshake: {error}; without --endpoint the configuration alone is examined"
        ) from error


def _distrust(host: str, port: int, config: ClientConfig) -> str:
    """Why a client with this caBundle refuses the connection; "" if it does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Stricter than Go, which is what the API server verifies with.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    roots = authorities_pem(config)
    if roots:
        context.load_verify_locations(cadata=roots)
    elif config.ca_bundle is None:
        context.load_default_certs()
    try:
        _handshake(host, port, server_name(config), context)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def _trusting_anything() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _handshake(host: str, port: int, name: str, context: ssl.SSLContext) -> bytes:
    """The leaf in DER."""
    with (
        socket.create_connection((host, port), timeout=TIMEOUT_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=name or host) as tls,
    ):
        return tls.getpeercert(binary_form=True) or b""
