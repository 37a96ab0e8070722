"""Finds the daemon, or starts one; and how a model is named to it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llmd.api.errors import DaemonUnreachableError
from llmd.cli.settings import read_settings
from llmd.cli.typed_text import valid

if TYPE_CHECKING:
    from llmd.client import Client

LOCK_NAME = "start.lock"


def connect(
    host: str | None, timeout_s: float | None, config_file: Path | None, *, start: bool = False
) -> Client:
    """Return a client of the daemon that answers, started in the background where ``start`` allows it.

    A daemon that was named, by ``host`` or a setting, is never started: it would be another one.

    Raises:
        DaemonUnreachableError: none answers and none may be started; the message has every place that was tried.
    """
    from llmd.client import Client

    settings = read_settings(config_file, host=host, timeout_s=timeout_s)
    client = Client(host, settings=settings)
    if settings.config.client.host or not start:
        return reached(client)
    try:
        return reached(client)
    except DaemonUnreachableError:
        with starting_alone(settings.directories.state / LOCK_NAME):
            return _reached_or_started(client, config_file)


def reached(client: Client) -> Client:
    """The client, once a daemon answers.

    Raises:
        DaemonUnreachableError: none does.
    """
    _ = client.address
    return client


def named(model: str) -> str:
    """What the daemon knows a model by: it has another working directory, so that paths are made absolute."""
    from llmd.models.gguf.model_files import is_gguf
    from llmd.models.model_path import expanded, is_model_path, names_path

    path = expanded(model)
    is_path = names_path(model) or (("/" in model or is_gguf(model)) and is_model_path(path))
    return valid(str(path.resolve()) if is_path else model)


@contextmanager
def starting_alone(lock: Path) -> Iterator[None]:
    """Of several commands that find no daemon, one starts it and the others wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _reached_or_started(client: Client, config_file: Path | None) -> Client:
    from llmd.cli.background import start_daemon

    try:
        return reached(client)
    except DaemonUnreachableError:
        click.echo("starting a daemon; `llmd stop --daemon` ends it", err=True)
    arguments = ["serve", *(["--config", str(config_file)] if config_file else [])]
    line = start_daemon(read_settings(config_file).directories, arguments)
    click.echo(line, err=True)
    return reached(client)
