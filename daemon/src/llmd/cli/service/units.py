"""The texts of llmd's systemd units. Nothing is read or written here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.config import Address, Directories, TcpAddress, UnixAddress
from llmd.models.model_path import resolved
from llmd.server.http.host_names import is_ip

SERVICE = "llmd.service"
SOCKET = "llmd.socket"
USER = "llmd"
EXIT_IDLE_S = 1800
"""A daemon without models of its own ends after this time; the next connection starts it again."""

NOTIFY_RELOAD_VERSION = 253
RELOAD_S = 60
WATCHDOG_S = 180.0
STOP_S = 10.0
"""Time to end engines after the drain."""

SYSTEM_DIRECTORIES = Directories(
    config=Path("/var/lib/llmd/config/llmd"),
    data=Path("/var/lib/llmd"),
    state=Path("/var/lib/llmd"),
    cache=Path("/var/cache/llmd"),
    user_socket=Path("/run/llmd/llmd.sock"),
)
"""The folders of the system service."""

SYSTEM_ENVIRONMENT = {
    "HOME": "/var/lib/llmd",
    "XDG_CONFIG_HOME": "/var/lib/llmd/config",
    "XDG_DATA_HOME": "/var/lib",
    "XDG_STATE_HOME": "/var/lib",
    "XDG_CACHE_HOME": "/var/cache",
    "XDG_RUNTIME_DIR": "/run",
}

_COMMON = """\
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
"""

# No MemoryDenyWriteExecute: compilers of backends generate code at run time.
_SANDBOX = """\
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
CapabilityBoundingSet=
DevicePolicy=closed
DeviceAllow=char-nvidia* rw
DeviceAllow=char-drm rw
DeviceAllow=char-kfd rw
DeviceAllow=char-accel rw
"""


class ServicePlan(Struct, frozen=True):
    """What the units depend on."""

    command: tuple[str, ...]
    """Starts llmd."""
    addresses: tuple[Address, ...]
    models: tuple[str, ...] = ()
    """Loaded at the start; without any, models are loaded when a request names them."""
    config_file: Path | None = None
    is_system: bool = False
    environment: Mapping[str, str] = {}
    groups: tuple[str, ...] = ()
    """Groups that may use devices."""
    drain_s: float = 30.0
    engine_timeout_s: float = 60.0
    systemd_version: int = 0


def socket_unit(plan: ServicePlan) -> str:
    """Return the unit of the sockets, whose first connection starts the daemon.

    Raises:
        ConfigError: systemd cannot listen on an address.
    """
    access = (
        f"SocketMode=0660\nSocketGroup={USER}" if plan.is_system else "SocketMode=0600\nDirectoryMode=0700"
    )
    listens = "\n".join(f"ListenStream={_listen_stream(address)}" for address in plan.addresses)
    return f"""\
[Unit]
Description=Sockets of the llmd inference daemon

[Socket]
{listens}
{access}
Backlog=1024
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""


def service_unit(plan: ServicePlan) -> str:
    """Return the unit of the daemon."""
    return f"""\
[Unit]
Description=llmd inference daemon
Requires={SOCKET}
After={SOCKET}
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
{_type(plan)}
ExecStart={" ".join(quoted(word) for word in start_command(plan))}
Restart=on-failure
RestartSec=2
TimeoutStopSec={plan.drain_s + STOP_S:g}
TimeoutAbortSec=10
WatchdogSec={max(WATCHDOG_S, 4 * plan.engine_timeout_s):g}
KillMode=mixed
OOMPolicy=continue
LimitNOFILE=65536
LimitMEMLOCK=infinity
{_identity(plan)}{_environment(plan)}{_COMMON}{_SANDBOX if plan.is_system else ""}
[Install]
WantedBy={"multi-user.target" if plan.is_system else "default.target"}
"""


def user_declaration() -> str:
    """Return the file for systemd-sysusers that creates the user and the group of the system service."""
    return f'u {USER} - "llmd inference daemon" {SYSTEM_ENVIRONMENT["HOME"]}\n'


def start_command(plan: ServicePlan) -> list[str]:
    """Return the command of the daemon."""
    config = ["--config", str(plan.config_file)] if plan.config_file else []
    # Named models stay loaded: such a daemon is never idle.
    idle = [] if plan.models else ["--exit-idle-s", str(EXIT_IDLE_S)]
    models = ["--", *plan.models] if plan.models else []
    return [*plan.command, "-v", "serve", *config, *idle, *models]


def quoted(word: str) -> str:
    """Quote a word of a command line in a unit."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if re.fullmatch(r"[^\s\"'\\;]+", word) else f'"{escaped}"'


def _type(plan: ServicePlan) -> str:
    if plan.systemd_version >= NOTIFY_RELOAD_VERSION:
        return "Type=notify-reload"
    config = ["--config", str(plan.config_file)] if plan.config_file else []
    # Unlike a signal, the command fails if the settings cannot be used, and says why.
    words = [*plan.command, "reload", "--timeout", str(RELOAD_S), *config]
    return f"Type=notify\nExecReload={' '.join(quoted(word) for word in words)}"


def _identity(plan: ServicePlan) -> str:
    if not plan.is_system:
        return ""
    groups = f"SupplementaryGroups={' '.join(plan.groups)}\n" if plan.groups else ""
    return f"User={USER}\nGroup={USER}\n{groups}StateDirectory=llmd\nCacheDirectory=llmd\n"


def _environment(plan: ServicePlan) -> str:
    variables = SYSTEM_ENVIRONMENT if plan.is_system else plan.environment
    return "".join(f"Environment={_assignment(name, value)}\n" for name, value in variables.items())


def _assignment(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{name}={escaped}"'


def _listen_stream(address: Address) -> str:
    if isinstance(address, UnixAddress):
        return str(address.path).replace("%", "%%")
    host = "127.0.0.1" if address.host == "localhost" else address.host
    if not is_ip(host) or not address.port:
        raise ConfigError(
            f"systemd cannot listen on {address}: it needs an IP address and a port",
            hint="set addr in config.toml to such an address, for example 0.0.0.0:8642",
        )
    return str(TcpAddress(host, address.port))


def checked_models(models: Sequence[str]) -> tuple[str, ...]:
    """Return the models of ``--model``; paths become absolute, since the service has another folder.

    Raises:
        ConfigError: a name has a line break, which no unit can hold.
    """
    for model in models:
        if not model.isprintable():
            raise ConfigError(f"{model!r} is not the name of a model", hint="see `llmd list`")
    return tuple(
        str(resolved(Path(model).expanduser())) if model.startswith(("/", ".", "~")) else model
        for model in models
    )
