"""``--host`` and ``--port`` of ``llmd serve``, which other tools have instead of ``--addr``."""

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
        default_text="127.0.0.1 if --port is given",
        help="Listen on this address; same as the HOST of --addr.",
    ),
    click.option(
        "--port",
        cls=OptionWithDefault,
        type=click.IntRange(0, 65535),
        metavar="PORT",
        default_text="8642 if --host is given",
        help="Listen on this TCP port.",
    ),
)


def listen_options(command: Decorated) -> Decorated:
    """Add ``--host`` and ``--port``, which llama-server and vLLM have instead of ``--addr``, to a command."""
    for option in reversed(LISTEN):
        command = option(command)
    return command


def typed_addresses(addr: Sequence[str], host: str | None, port: int | None) -> tuple[str, ...]:
    """Return the addresses that ``--addr`` names, or the one that ``--host`` and ``--port`` name together.

    Raises:
        ConfigError: both forms were given, or ``--host`` is not an address.
    """
    from llmd.config.addresses import DEFAULT_TCP, TcpAddress, parse_address

    if host is None and port is None:
        return tuple(addr)
    if addr:
        raise ConfigError(
            "--addr cannot be combined with --host or --port",
            hint="repeat --addr HOST:PORT for each address",
        )
    address = parse_address(host or DEFAULT_TCP.host, "--host")
    if port is None:
        return (str(address),)
    if not isinstance(address, TcpAddress):
        raise ConfigError(f"--host {host} takes no port", hint="leave --port out")
    return (str(TcpAddress(address.host, port, address.tls)),)
