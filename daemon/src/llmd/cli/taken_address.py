"""Says which daemon has an address that cannot be listened on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llmd.api.errors import ConfigError, LlmdError
from llmd.server.http.listeners import EXIT_CONFLICT

if TYPE_CHECKING:
    from llmd.config import Address, Settings


@contextmanager
def explained_conflicts(settings: Settings) -> Iterator[None]:
    """Explain the error of an address in use, if a daemon that is about to end has it.

    Raises:
        ConfigError: the error of the block, or its explanation.
    """
    try:
        yield
    except ConfigError as error:
        address = draining_daemon(settings) if error.exit_code == EXIT_CONFLICT else None
        if address is None:
            raise
        explained = ConfigError(
            f"{error.message}: an llmd daemon at {address} answers its last requests and then ends",
            hint="wait for it with `llmd stop --daemon`, then start this one",
        )
        explained.exit_code = EXIT_CONFLICT
        raise explained from error


def draining_daemon(settings: Settings) -> Address | None:
    """Return the configured address at which a daemon answers its last requests; None if there is none."""
    from llmd.cli.doctor.patience import patient_client
    from llmd.config.listening import listening_addresses

    for address in listening_addresses(settings):
        try:
            if patient_client(str(address), settings).is_draining():
                return address
        except LlmdError:
            continue
    return None
