"""The addresses that a daemon listens on, as the settings say."""

from __future__ import annotations

from llmd.config.addresses import DEFAULT_TCP, Address, UnixAddress, parse_address
from llmd.config.sources import Settings


def listening_addresses(settings: Settings) -> tuple[Address, ...]:
    """Return the configured addresses, and the user's socket; by default, that socket and loopback.

    Raises:
        ConfigError: an address has no known form.
    """
    given = _given(settings)
    added = added_socket(settings)
    if added is not None:
        return (added, *given)
    return given or (UnixAddress(settings.directories.user_socket), DEFAULT_TCP)


def added_socket(settings: Settings) -> UnixAddress | None:
    """Return the user's socket if it is added to configured addresses.

    They are TCP addresses then: a Unix socket among them replaces it.
    """
    given = _given(settings)
    if not given or not settings.config.server.listen.user_socket:
        return None
    if any(isinstance(address, UnixAddress) for address in given):
        return None
    return UnixAddress(settings.directories.user_socket)


def _given(settings: Settings) -> tuple[Address, ...]:
    source = settings.origins["server.addr"].source
    return tuple(parse_address(text, f"addr from {source}") for text in settings.config.server.listen.addr)
