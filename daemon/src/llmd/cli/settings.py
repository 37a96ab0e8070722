"""Flags for settings. A typed flag overrides every other source of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from llmd.cli.completion.names import device_names
from llmd.cli.setting_option import setting_option

if TYPE_CHECKING:
    from llmd.api.errors import ConfigError
    from llmd.config import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
WARNED = "llmd.warned"
"""Key in the click context's ``meta``: the command has warned of unknown variables."""
FIND_DAEMON = frozenset({"addr", "host"})
"""The settings that say where the daemon is."""

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Read this file instead of your config.toml.",
)
HOST = setting_option(
    "--host",
    setting="host",
    metavar="unix:PATH|[https://]HOST:PORT",
    help="Address of the daemon.",
)
TIMEOUT = setting_option(
    "--timeout",
    "--timeout-s",
    "timeout_s",
    setting="timeout_s",
    type=float,
    metavar="SECONDS",
    help="Fail if the daemon sends nothing for this long; also LLMD_TIMEOUT_S.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

THREADS = setting_option(
    "--threads",
    setting="threads",
    type=int,
    metavar="N",
    help="CPU threads for computation.",
)
DEVICE = setting_option(
    "--device",
    setting="device",
    metavar="auto|NAME,…",
    shell_complete=device_names,
    help="The device that runs models, or those to choose from; see `llmd devices`.",
)
SPLIT = setting_option(
    "--split",
    setting="split",
    metavar="0-3=NAME,4-7=NAME",
    help="Split the layers over several devices; layer numbers are inclusive. `embed`, `head`, `3.mixer` and"
    " `3.ffn` name other parts.",
)
QUANT = setting_option(
    "--quant",
    setting="quant",
    metavar="FORMAT",
    help="Quantise weights while loading: q8, q4, q3, q2 or another of docs/formats.md.",
)

# No defaults here: they are in the schema, and a flag that was not typed must not override other sources.
ENGINE = (
    DEVICE,
    setting_option(
        "--gpu-layers",
        setting="gpu_layers",
        type=int,
        metavar="N",
        help="Layers that run on graphics cards, counted from the last one; by default chosen by speed.",
    ),
    setting_option(
        "--cpu-experts",
        setting="cpu_experts",
        type=int,
        metavar="N",
        help="Layers whose experts stay in main memory, counted from the first; by default chosen by speed.",
    ),
    SPLIT,
    THREADS,
    setting_option(
        "-c", "--max-ctx", setting="max_ctx", type=int, metavar="N", help="Context window in tokens."
    ),
    setting_option(
        "--slots",
        setting="slots",
        type=int,
        metavar="N",
        help="Sequences that run at once; reserves no memory.",
    ),
    setting_option(
        "--prefill-chunk",
        setting="prefill_chunk",
        type=int,
        metavar="N",
        help="Prompt tokens per step; smaller values delay running answers less.",
    ),
    QUANT,
    setting_option(
        "--activations",
        setting="activations",
        metavar="int8|f32|f16|bf16",
        help="Format of the rows that weights are multiplied with; by default the device's choice.",
    ),
    setting_option(
        "--kv-dtype",
        setting="kv_dtype",
        metavar="f16|bf16|int8|int4|f32",
        help="Format of the KV cache.",
    ),
    setting_option(
        "--kv-memory", setting="kv_memory", metavar="SIZE", help="Memory for the KV cache, such as 4GiB."
    ),
    setting_option(
        "--kv-spool",
        setting="kv_spool",
        metavar="SIZE",
        help="Disk space for the cached prompts of an unloaded model; 0 for none.",
    ),
    setting_option(
        "--weight-cache",
        setting="weight_cache",
        metavar="SIZE",
        help="Disk space for weights in device layout; 0 for none.",
    ),
)
HUB = setting_option("--hub", setting="hub", metavar="URL", help="The hub to pull from.")
SERVER = (
    setting_option(
        "--addr",
        setting="addr",
        multiple=True,
        metavar="[https://]HOST:PORT|unix:PATH",
        help="Listen here; repeatable.",
    ),
    setting_option(
        "--user-socket/--no-user-socket",
        setting="user_socket",
        default=None,
        help="Listen on your user socket too if every --addr is a TCP address.",
    ),
    setting_option(
        "--allow-host",
        setting="allow_host",
        multiple=True,
        metavar="NAME",
        help="Also accept requests for this host name; repeatable.",
    ),
    setting_option(
        "--allow-origin",
        setting="allow_origin",
        multiple=True,
        metavar="ORIGIN",
        help="Also accept requests from this web origin: https://app.example, https://*.example.com, app://*; repeatable.",
    ),
    setting_option(
        "--no-auth",
        setting="no_auth",
        is_flag=True,
        default=None,
        help="Serve other machines on the network without a key.",
    ),
    setting_option(
        "--require-key",
        setting="require_key",
        is_flag=True,
        default=None,
        help="Require a key on loopback, too.",
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
        help="Time that running answers get to finish after SIGTERM.",
    ),
    setting_option(
        "--exit-idle-s",
        setting="exit_idle_s",
        type=float,
        metavar="SECONDS",
        help="End after this time without requests and loaded models, if a service manager passed the sockets.",
    ),
    setting_option(
        "--keep-alive",
        setting="keep_alive",
        metavar="DURATION",
        help="Unload a model after this time without requests, such as 10m; -1: never.",
    ),
    setting_option(
        "--max-memory",
        setting="max_memory",
        metavar="SIZE",
        help="Limit of main memory for all models together, such as 24GiB.",
    ),
    setting_option(
        "--memory-budget",
        setting="memory_budget",
        metavar="NAME=SIZE,…",
        help="Limits of device memories for all models together, such as cuda:0=20GiB.",
    ),
    setting_option(
        "--spare-engine/--no-spare-engine",
        setting="spare_engine",
        default=None,
        help="Keep a spare engine process so that the next model starts to load at once.",
    ),
)


def serving_options(command: Decorated) -> Decorated:
    """Add the options for where a daemon listens and how it loads models to a command."""
    return _with(command, (*SERVER, HUB, *ENGINE, CONFIG))


def client_options(command: Decorated) -> Decorated:
    """Add the options for reaching the daemon to a command."""
    return _with(command, (HOST, TIMEOUT, CONFIG))


def read_settings(config_file: Path | None, **flags: Any) -> Settings:
    """Build the configuration and warn of unknown ``LLMD_`` variables. Flags that are None or () were not
    typed.

    Raises:
        ConfigError: a value is invalid; the message names its origin.
    """
    settings = build_settings(config_file, **flags)
    warn_of_unknown(settings)
    return settings


def daemon_settings(config_file: Path | None, **flags: Any) -> Settings:
    """Build the configuration for a command that only speaks to a daemon, or only needs llmd's folders.

    An error in a file is a warning, so that a running daemon can be used and stopped: only what is wrong with
    the settings that say where the daemon is must be corrected first.

    Raises:
        ConfigError: a flag or a variable is invalid, a named file does not exist, or the daemon's address in
        a file is invalid.
    """
    from llmd.config import load_settings

    errors: list[ConfigError] = []
    settings = load_settings(_typed(flags), file=config_file, report=errors.append)
    for error in errors:
        if error.file is None or error.setting in FIND_DAEMON:
            raise error
    warn_of_unknown(settings, errors)
    return settings


def build_settings(config_file: Path | None, **flags: Any) -> Settings:
    """Build the configuration without warnings; raises like `read_settings`."""
    from llmd.config import load_settings

    return load_settings(_typed(flags), file=config_file)


def _typed(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if value == () else value for name, value in flags.items()}


def warn_of_unknown(settings: Settings, ignored: Sequence[ConfigError] = ()) -> None:
    """Print a warning for each variable that is not a setting, and one for errors in files that are ignored;
    once per command.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.setdefault(WARNED, settings) is not settings:
        return  # a command that starts a daemon reads the settings twice
    if ignored:
        more = f" (and {len(ignored) - 1} more)" if len(ignored) > 1 else ""
        hint = "it is ignored; `llmd config check` shows every error"
        click.echo(f"llmd: warning: {ignored[0].message}{more}; {hint}", err=True)
    for variable in settings.unknown:
        click.echo(f"llmd: warning: {variable.name} is not a setting; {variable.hint}", err=True)


def _with(command: Decorated, options: tuple[Callable[[Decorated], Decorated], ...]) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command
