"""Lets a running daemon know that keys have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llmd.api.errors import DaemonUnreachableError, LlmdError

if TYPE_CHECKING:
    from llmd.config import Settings


def tell_daemon(settings: Settings) -> None:
    """Let the daemon of this user read its keys anew; where none runs, the next one will."""
    from llmd.client import Client

    try:
        Client(settings=settings).reload()
    except DaemonUnreachableError:
        return
    except LlmdError as error:
        click.echo(f"the daemon did not take the change: {error}; send it SIGHUP", err=True)
