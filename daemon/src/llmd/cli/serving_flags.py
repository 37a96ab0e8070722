"""``--host`` and ``--port`` of ``llmd serve``: other tools have them in place of ``--addr``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from llmd.api.errors import ConfigError
from llmd.cli.setting_option import OptionWithDefault

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


LISTEN = (
    click.option(
        "--host",
        cls=OptionWithDefault,
        metavar="HOST",
        default_text="127.0.0.1, where --port stands",
        help="Listen on this address, as --addr HOST:PORT does.",
    ),
    click.option(
        "--port",
        cls=OptionWithDefault,
        type=click.IntRange(0, 65535),
        metavar="PORT",
        default_text="8642, where --host stands",
        help="Listen on this TCP port.",
    ),
)


def listen_options(command: Decorated) -> Decorated:
    """Give a command ``--host`` and ``--port``, which llama-server and vLLM have in place of ``--addr``."""
    for option in reversed(LISTEN):
        command = option(command)
    return command


def typed_addresses(addr: Sequence[str], host: str | None, port: int | None) -> tuple[str, ...]:
    """Return the addresses that ``--addr`` names, or the one that ``--host`` and ``--port`` name together.

    Raises:
        ConfigError: both were typed, or ``--host`` is not an address.
    """
    from llmd.config.addresses import DEFAULT_TCP, TcpAddress, parse_address

    if host is None and port is None:
        return tuple(addr)
    if addr:
        raise ConfigError(
            "--addr and --host or --port cannot stand together",
            hint="repeat --addr HOST:PORT for each address",
        )
    address = parse_address(host or DEFAULT_TCP.host, "--host")
    if port is None:
        return (str(address),)
    if not isinstance(address, TcpAddress):
        raise ConfigError(f"--host {host} has no port", hint="leave --port out")
    return (str(TcpAddress(address.host, port, address.tls)),)
