"""``llmd cancel``: ends requests of any client."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.api.errors import NotFoundError
from llmd.cli.completion.names import request_ids
from llmd.cli.connection import connect
from llmd.cli.examples import examples
from llmd.cli.settings import client_options


@click.command(epilog=examples("llmd cancel req_0f3c", "llmd ps --requests"))
@click.argument("ids", nargs=-1, required=True, metavar="ID…", shell_complete=request_ids)
@client_options
def command(
    *, ids: tuple[str, ...], host: str | None, timeout_s: float | None, config_file: Path | None
) -> None:
    """End requests that run or wait, by their ids; `llmd ps --requests` lists them.

    Their clients get the error `request_cancelled`. The other ids are still ended if one is not found.
    """
    client = connect(host, timeout_s, config_file)
    missing = []
    for request_id in ids:
        try:
            client.cancel(request_id)
        except NotFoundError:
            missing.append(request_id)
    if missing:
        raise NotFoundError(
            f"no request {' or '.join(missing)} runs or waits", hint="see `llmd ps --requests`"
        )
