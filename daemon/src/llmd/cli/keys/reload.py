"""Makes a running daemon reload its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llmd.api.errors import DaemonUnreachableError, LlmdError

if TYPE_CHECKING:
    from llmd.config import Settings


def tell_daemon(settings: Settings) -> None:
    """Make the user's daemon reload its keys. If none is running, the next one reads them when it starts."""
    from llmd.client import Client

    try:
        Client(settings=settings).reload()
    except DaemonUnreachableError:
        return
    except LlmdError as error:
        click.echo(f"the running daemon still uses the old keys: {error}; then run `llmd reload`", err=True)
