"""The flags of ``llmd serve`` that other tools have under other names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from llmd.api.errors import ConfigError
from llmd.config.other_tools import flags_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class FlagWithOtherNames(click.Option):
    """An option that also takes the names that other tools have for it. Help shows llmd's names alone."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        shown = copy.copy(self)
        others = flags_of(self.name or "")
        shown.opts = [name for name in self.opts if name not in others]
        return click.Option.get_help_record(shown, ctx)


def setting_option(*names: str, setting: str, **details: Any) -> Callable[[Decorated], Decorated]:
    """Make the option of a setting, which takes the names of other tools as well."""
    return click.option(*names, *flags_of(setting), cls=FlagWithOtherNames, **details)


LISTEN = (
    click.option("--host", metavar="HOST", help="Listen on this address, as --addr HOST:PORT does."),
    click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Listen on this TCP port."),
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
