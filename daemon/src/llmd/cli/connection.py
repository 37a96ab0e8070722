"""Finds the daemon or starts one, and resolves model names for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from llmd.api.errors import DaemonUnreachableError
from llmd.cli.settings import daemon_settings, read_settings
from llmd.cli.typed_text import valid

if TYPE_CHECKING:
    from llmd.client import Client

LOCK_NAME = "start.lock"


def connect(
    host: str | None, timeout_s: float | None, config_file: Path | None, *, start: bool = False
) -> Client:
    """Return a client of a running daemon; start one in the background if none answers and ``start`` is set.

    If ``host`` or a setting names a daemon, none is started: it would be a different one.

    Raises:
        DaemonUnreachableError: no daemon answers and none may be started; the message lists the addresses
        tried.
    """
    from llmd.client import Client

    settings = daemon_settings(config_file, host=host, timeout_s=timeout_s)
    client = Client(host, settings=settings)
    if settings.config.client.host or not start:
        return reached(client)
    try:
        return reached(client)
    except DaemonUnreachableError:
        from llmd.registry.locks import locked

        # If several commands find no daemon, one starts it and the others wait.
        with locked(settings.directories.state / LOCK_NAME, alone=True):
            return _reached_or_started(client, config_file)


def reached(client: Client) -> Client:
    """Return the client if a daemon answers it.

    Raises:
        DaemonUnreachableError: no daemon answers.
    """
    _ = client.address
    return client


def named(model: str) -> str:
    """Return the model's name for the daemon. Paths become absolute: the daemon has another working
    directory.

    Raises:
        NotFoundError: it has the ending of a file of weights, and there is no such file.
    """
    from llmd.models.gguf.model_files import is_gguf
    from llmd.models.model_path import (
        expanded,
        is_model_path,
        names_file,
        names_path,
        path_error,
        resolved,
    )

    path = expanded(model)
    if names_file(model) and not is_model_path(path) and not _is_stored(model):
        error = path_error(model)
        if error is not None:
            raise error
    is_path = names_path(model) or (("/" in model or is_gguf(model)) and is_model_path(path))
    return valid(str(resolved(path)) if is_path else model)


def _is_stored(model: str) -> bool:
    from llmd.cli.composition import build_store

    return model in build_store(daemon_settings(None).directories).names()


def _reached_or_started(client: Client, config_file: Path | None) -> Client:
    from llmd.cli.background import start_daemon

    try:
        return reached(client)
    except DaemonUnreachableError:
        click.echo("starting a daemon; `llmd stop --daemon` stops it", err=True)
    arguments = ["serve", *(["--config", str(config_file)] if config_file else [])]
    line = start_daemon(read_settings(config_file).directories, arguments)
    click.echo(line, err=True)
    return reached(client)
