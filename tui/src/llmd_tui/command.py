"""``llmd tui``: the full-screen interface."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd_tui.daemon.access import Daemon


@click.command()
@click.argument("screen", required=False)
@click.option("--host", help="Address of the daemon: unix:PATH, HOST:PORT or http://HOST:PORT.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Read this file instead of your config.toml.",
)
@click.option("--demo", is_flag=True, help="Show a recording; no daemon and no model is needed.")
@click.option("--text", "as_text", is_flag=True, help="Write lines of text, for screen readers and logs.")
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
def command(
    *,
    screen: str | None,
    host: str | None,
    config_file: Path | None,
    demo: bool,
    as_text: bool,
    no_start: bool,
) -> None:
    """Chat with models and watch the daemon on a full screen.

    SCREEN is chat, models, devices, monitor, kv, plugins, logs, or a screen of a plugin. If no daemon is
    running, one is started and left running. Ctrl-P lists everything that can be done.
    """
    from llmd.config import load_settings
    from llmd_tui.app import Folders, LlmdTui
    from llmd_tui.screen import found_screens, load_screens

    settings = load_settings({"host": host}, file=config_file)
    names = found_screens()
    if screen is not None and screen not in names:
        raise click.BadParameter(f"{screen!r} is not one of {', '.join(names)}", param_hint="SCREEN")
    daemon = _daemon(settings, host, demo=demo, start=not no_start)
    if as_text:
        from llmd_tui.text import run_as_text

        run_as_text(daemon)
        return
    log_to(settings.directories.state / "tui.log", logging.getLogger())
    loaded = dict(load_screens(names))
    folders = Folders(settings.directories.data, settings.directories.state)
    LlmdTui(
        daemon,
        {name: found for name, found in loaded.items() if not isinstance(found, str)},
        folders=folders,
        first=screen or "",
        failures=tuple(found for found in loaded.values() if isinstance(found, str)),
        environ=os.environ,
    ).run()


def log_to(file: Path, logger: logging.Logger) -> None:
    """Write what is logged to a file: on standard error it would cover the screen. Its folder is created.

    The file is created for the first record.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in logger.handlers[:]:
        new = logging.FileHandler(file, delay=True)
        new.setFormatter(old.formatter)
        new.filters[:] = old.filters
        logger.removeHandler(old)
        logger.addHandler(new)


def _daemon(settings: Settings, host: str | None, *, demo: bool, start: bool) -> Daemon:
    from llmd.client import candidates

    if demo:
        from llmd_tui.demo.recorded_daemon import RecordedDaemon

        return RecordedDaemon.shipped()
    from llmd_tui.daemon.http_daemon import HttpDaemon
    from llmd_tui.daemon.starting import reach

    addresses = candidates(settings, host)
    reach(addresses, start=start and settings.config.client.host is None)
    client = settings.config.client
    return HttpDaemon(addresses, key=client.api_key, ca_file=client.ca_file)
