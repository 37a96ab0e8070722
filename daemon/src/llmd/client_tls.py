"""Encrypted connections of a client: what it trusts, and why one failed."""

from __future__ import annotations

import socket
import ssl

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.config import TcpAddress

PROBE_LIMIT_S = 1.0
NAME_MISMATCHES = (62, 64)
"""OpenSSL's codes for a certificate that is valid, but not for this host name or this IP address."""


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """Return what decides which certificates are trusted: those in the file, in place of the system's.

    Raises:
        ConfigError: the file cannot be read, or has no certificate.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # the error of ssl does not name the file
        reason = "it has no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(
            f"ca_file: {ca_file} cannot be used: {reason}",
            hint="set LLMD_CA_FILE, or ca_file in config.toml, to the file with the server's certificate",
        ) from error


def trusting_all() -> ssl.SSLContext:
    """Return what trusts every certificate. Send nothing over it that others may not read."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def tls_failure(address: TcpAddress, error: ssl.SSLError) -> DaemonUnreachableError:
    """Return the error of a connection that could not be encrypted."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return DaemonUnreachableError(
            f"the connection to {address} could not be encrypted: {error.reason or error}",
            hint=f"if the server does not encrypt, name it http://{address.url.partition('//')[2]}",
        )
    if error.verify_code in NAME_MISMATCHES:
        hint = "name the server as its certificate does"
    else:
        hint = "if you know the server, set LLMD_CA_FILE, or ca_file in config.toml, to the file with its certificate"
    return DaemonUnreachableError(
        f"the certificate of {address} is not trusted: {error.verify_message}", hint=hint
    )


def expects_tls(address: TcpAddress) -> bool:
    """Return whether a server that closed a plain connection accepts encrypted ones."""
    try:
        with (
            socket.create_connection((address.host, address.port), PROBE_LIMIT_S) as plain,
            trusting_all().wrap_socket(plain, server_hostname=address.host),
        ):
            return True
    except OSError:
        return False
