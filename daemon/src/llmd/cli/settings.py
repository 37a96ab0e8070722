"""Flags that are settings: what was typed becomes the strongest source of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from llmd.cli.setting_option import setting_option

if TYPE_CHECKING:
    from llmd.config import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
WARNED = "llmd.warned"
"""Where a command keeps that it has warned of variables."""

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Read this file instead of the user's config.toml.",
)
HOST = setting_option(
    "--host", setting="host", help="Where the daemon is: unix:PATH, HOST:PORT or http://HOST:PORT."
)
TIMEOUT = setting_option(
    "--timeout",
    "--timeout-s",
    "timeout_s",
    setting="timeout_s",
    type=float,
    metavar="SECONDS",
    help="How long the daemon may be silent; also LLMD_TIMEOUT_S.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

THREADS = setting_option(
    "--threads",
    setting="threads",
    type=int,
    metavar="N",
    help="Threads of the CPU that compute.",
)

# No defaults here: they stand in the schema, and a flag that was not typed is no source.
ENGINE = (
    setting_option(
        "--device",
        setting="device",
        metavar="auto|NAME",
        help="The device that runs models; see `llmd devices`.",
    ),
    setting_option(
        "--split",
        setting="split",
        metavar="0-3=NAME,4-7=NAME",
        help="Layers on several devices, last one included.",
    ),
    THREADS,
    setting_option(
        "-c", "--max-ctx", setting="max_ctx", type=int, metavar="N", help="Context window in tokens."
    ),
    setting_option(
        "--slots",
        setting="slots",
        type=int,
        metavar="N",
        help="Requests that run at once; reserves no memory.",
    ),
    setting_option(
        "--prefill-chunk",
        setting="prefill_chunk",
        type=int,
        metavar="N",
        help="Prompt tokens of a step: fewer, and others wait less.",
    ),
    setting_option(
        "--quant",
        setting="quant",
        metavar="FORMAT",
        help="Quantise weights while loading: q8, q4, q3, q2 or another of docs/formats.md.",
    ),
    setting_option(
        "--activations",
        setting="activations",
        metavar="int8|f32",
        help="How rows are held that quantised weights multiply.",
    ),
    setting_option(
        "--kv-dtype",
        setting="kv_dtype",
        metavar="f16|bf16|int8|int4|f32",
        help="How keys and values are kept.",
    ),
    setting_option(
        "--kv-memory", setting="kv_memory", metavar="SIZE", help="Memory for keys and values, such as 4GiB."
    ),
    setting_option(
        "--kv-spool",
        setting="kv_spool",
        metavar="SIZE",
        help="Disk for cached prompts of a model that is unloaded; 0 for none.",
    ),
    setting_option(
        "--weight-cache",
        setting="weight_cache",
        metavar="SIZE",
        help="Disk for weights as devices lay them out; 0 for none.",
    ),
)
HUB = setting_option("--hub", setting="hub", metavar="URL", help="Pull from this hub.")
SERVER = (
    setting_option(
        "--addr",
        setting="addr",
        multiple=True,
        metavar="[https://]HOST:PORT|unix:PATH",
        help="Listen here; repeatable.",
    ),
    setting_option(
        "--allow-host",
        setting="allow_host",
        multiple=True,
        metavar="NAME",
        help="Answer to this host name too; repeatable.",
    ),
    setting_option(
        "--allow-origin",
        setting="allow_origin",
        multiple=True,
        metavar="ORIGIN",
        help="Let these pages ask, too: https://app.example, https://*.example.com, app://*; repeatable.",
    ),
    setting_option(
        "--no-auth",
        setting="no_auth",
        is_flag=True,
        default=None,
        help="Serve everyone on the network, without a key.",
    ),
    setting_option(
        "--require-key",
        setting="require_key",
        is_flag=True,
        default=None,
        help="Demand a key on loopback, too.",
    ),
    setting_option(
        "--tls-cert", setting="tls_cert", metavar="FILE", help="Certificate chain for --addr https://…, PEM."
    ),
    setting_option(
        "--tls-key", setting="tls_key", metavar="FILE", help="Private key of the certificate, PEM."
    ),
    setting_option(
        "--drain-s",
        setting="drain_s",
        type=float,
        metavar="SECONDS",
        help="How long answers may go on after SIGTERM.",
    ),
    setting_option(
        "--keep-alive",
        setting="keep_alive",
        metavar="DURATION",
        help="How long a model stays without requests: 10m; -1 for ever.",
    ),
    setting_option(
        "--max-memory",
        setting="max_memory",
        metavar="SIZE",
        help="Memory for all models together, such as 24GiB.",
    ),
    setting_option(
        "--spare-engine/--no-spare-engine",
        setting="spare_engine",
        default=None,
        help="Keep an engine started ahead: the next model begins to load at once.",
    ),
)


def serving_options(command: Decorated) -> Decorated:
    """Give a command the options that say where a daemon listens and how it loads models."""
    return _with(command, (*SERVER, HUB, *ENGINE, CONFIG))


def client_options(command: Decorated) -> Decorated:
    """Give a command the options that say where the daemon is."""
    return _with(command, (HOST, TIMEOUT, CONFIG))


def read_settings(config_file: Path | None, **flags: Any) -> Settings:
    """Build the configuration, and warn of variables that are no settings; flags that are None or empty were not typed.

    Raises:
        ConfigError: a value cannot be used; the message says where it came from.
    """
    settings = build_settings(config_file, **flags)
    warn_of_unknown(settings)
    return settings


def build_settings(config_file: Path | None, **flags: Any) -> Settings:
    """The same without a warning; raises as `read_settings` does."""
    from llmd.config import load_settings

    typed = {name: None if value == () else value for name, value in flags.items()}
    return load_settings(typed, file=config_file)


def warn_of_unknown(settings: Settings) -> None:
    """Say which variables are no settings, once in a command."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.setdefault(WARNED, settings) is not settings:
        return  # read before, as by commands that also start a daemon
    for variable in settings.unknown:
        click.echo(f"llmd: warning: {variable.name} is no setting; {variable.hint}", err=True)


def _with(command: Decorated, options: tuple[Callable[[Decorated], Decorated], ...]) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command
