"""The daemon's TLS certificate."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from llmd.api.errors import ConfigError
from llmd.config import Address, TcpAddress


class Certificate:
    """A certificate chain and its private key in PEM format; both may be in one file."""

    def __init__(self, chain: str, key: str | None) -> None:
        """Raises `ConfigError` if the files cannot be used."""
        self._files = (chain, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_alpn_protocols(["http/1.1"])
        self.reload()

    def reload(self) -> None:
        """Load the files again; new connections use them.

        Raises:
            ConfigError: they cannot be used; the certificate stays as it was.
        """
        chain, key = self._files
        try:
            # Tried on another context first: a key that does not match would leave this one half updated.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key, password=_no_password)
            self.context.load_cert_chain(chain, key, password=_no_password)
        except (OSError, ssl.SSLError) as error:
            files = chain if key is None else f"{chain} and {key}"
            raise ConfigError(
                f"the certificate of {files} cannot be used: {error}",
                hint="give PEM files: the chain as tls_cert, its private key without a password as tls_key",
            ) from error


def certificate_for(addresses: Sequence[Address], chain: str | None, key: str | None) -> Certificate | None:
    """Return the certificate if an address is ``https://…``, otherwise None.

    Raises:
        ConfigError: it is missing, no address uses it, or it cannot be used.
    """
    encrypted = any(isinstance(address, TcpAddress) and address.tls for address in addresses)
    if encrypted and chain is None:
        raise ConfigError(
            "an https address needs a certificate", hint="give --tls-cert FILE and --tls-key FILE"
        )
    if not encrypted and chain is not None:
        raise ConfigError(
            "a certificate is given, but no address uses it", hint="listen on --addr https://HOST:PORT"
        )
    return Certificate(chain, key) if chain is not None else None


def _no_password() -> str:
    """Called by OpenSSL for an encrypted key, so that it does not prompt on the terminal."""
    raise ConfigError(
        "the private key of the certificate has a password", hint="use a key without a password"
    )
