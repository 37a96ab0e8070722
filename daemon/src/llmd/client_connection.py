"""One connection of a client, over a Unix socket or TCP, and why it failed."""

from __future__ import annotations

import http.client
import socket

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.config import Address, TcpAddress, UnixAddress

CONNECT_LIMIT_S = 5.0
EXIT_TIMEOUT = 7


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket or TCP, with TLS if the address requires it."""

    def __init__(self, address: Address, timeout_s: float, ca_file: str | None) -> None:
        host = "llmd" if isinstance(address, UnixAddress) else address.host
        super().__init__(host, timeout=timeout_s)
        self._address = address
        self._ca_file = ca_file

    def connect(self) -> None:
        self.sock = connected(self._address)
        if isinstance(self._address, TcpAddress) and self._address.tls:
            self.sock = _encrypted(self.sock, self._address.host, self._ca_file)
        self.sock.settimeout(self.timeout)


def _encrypted(plain: socket.socket, host: str, ca_file: str | None) -> socket.socket:
    """Start TLS on a connection.

    Raises:
        OSError: it fails, or the certificate is not trusted.
        ConfigError: ``ca_file`` cannot be used.
    """
    from llmd.client_tls import trusting

    try:
        return trusting(ca_file).wrap_socket(plain, server_hostname=host)
    except (OSError, ConfigError):
        plain.close()
        raise


def connected(address: Address) -> socket.socket:
    """Return a connected socket.

    Raises:
        OSError: the connection failed.
    """
    if not isinstance(address, UnixAddress):
        return socket.create_connection((address.host, address.port), CONNECT_LIMIT_S)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(CONNECT_LIMIT_S)
        connection.connect(str(address.path))
    except OSError:
        connection.close()
        raise
    return connection


def lost(address: Address, error: Exception) -> DaemonUnreachableError:
    if isinstance(address, TcpAddress) and (failure := _encryption_failure(address, error)):
        return failure
    if isinstance(error, TimeoutError):
        late = DaemonUnreachableError(
            f"the daemon at {address} did not answer in time", hint="raise --timeout"
        )
        late.exit_code = EXIT_TIMEOUT
        return late
    return DaemonUnreachableError(
        f"the connection to the daemon at {address} was lost: {error}",
        hint="see its log, or start it with `llmd serve`",
    )


def _encryption_failure(address: TcpAddress, error: Exception) -> DaemonUnreachableError | None:
    """Return what is wrong if one side encrypts and the other does not, or the certificate is not trusted."""
    if address.tls:
        import ssl

        from llmd.client_tls import tls_failure

        return tls_failure(address, error) if isinstance(error, ssl.SSLError) else None
    if not isinstance(error, (ConnectionError, http.client.BadStatusLine)):
        return None
    from llmd.client_tls import expects_tls

    if not expects_tls(address):
        return None
    return DaemonUnreachableError(
        f"the server at {address} expects encrypted connections", hint=f"name it https://{address}"
    )
