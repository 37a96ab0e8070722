"""``llmd service install``: writes the files of the service and starts it on demand."""

from __future__ import annotations

import grp
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.cli.completion.names import model_names
from llmd.cli.connection import named
from llmd.cli.examples import examples
from llmd.cli.service.launcher import launcher, unreachable_program
from llmd.cli.service.scope import SYSTEM, check_may_change, is_macos, named_service
from llmd.cli.service.served_models import check_serves
from llmd.cli.settings import CONFIG, read_settings

if TYPE_CHECKING:
    from llmd.cli.service.launch_agent import LaunchAgent
    from llmd.cli.service.units import ServicePlan
    from llmd.config import Address, Settings

KEPT = (
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_ENDPOINT",
    "LLMD_ADDR",
    "LLMD_CONFIG",
)
"""Variables that say where files and sockets are, and that a service manager may not have."""

EXIT_CONFLICT = 9
DEVICE_GROUPS = ("video", "render")


@click.command(
    "install",
    epilog=examples(
        "llmd service install",
        "llmd service install --model guide --print",
        "sudo /opt/llmd/bin/llmd service install --system",
    ),
)
@SYSTEM
@click.option(
    "--model",
    "-m",
    "models",
    multiple=True,
    metavar="MODEL",
    shell_complete=model_names,
    help="Start with the machine and keep this model loaded; repeatable.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the files and change nothing.")
@CONFIG
def command(*, is_system: bool, models: tuple[str, ...], only_print: bool, config_file: Path | None) -> None:
    """Install the daemon as a service.

    By default it is a service of your own, which reads your models and settings. The first connection
    starts it. Models are loaded when a request names them and unloaded when idle.
    """
    if is_macos():
        if is_system:
            raise ConfigError("on macOS, llmd has no service of the system", hint="leave out --system")
        launched = agent(models, config_file)
        if not only_print:
            check_serves(models, read_settings(config_file))
        _install_agent(launched, only_print=only_print)
        return
    from llmd.cli.service.system_command import check_systemd_runs
    from llmd.cli.service.units import SERVICE, SOCKET

    service, plan = named_service(is_system=is_system), service_plan(models, config_file, is_system=is_system)
    if only_print:
        _print({path: text.encode() for path, text in service.files(plan).items()})
        return
    check_systemd_runs()
    check_may_change(service)
    if is_system:
        check_reachable(plan.command[0])
    check_serves(plan.models, _settings(plan.config_file, is_system=is_system), is_system=is_system)
    if not service.is_installed:
        check_free(plan.addresses)
    service.install(plan)
    addresses = " and ".join(map(str, plan.addresses))
    click.echo(f"installed {SOCKET} and {SERVICE} in {service.folder}; llmd listens on {addresses}")
    click.echo(_notes(is_system=is_system), err=True)


def service_plan(models: tuple[str, ...], config_file: Path | None, *, is_system: bool) -> ServicePlan:
    """Return what the units of this installation depend on.

    Raises:
        ConfigError: a setting is invalid.
    """
    from llmd.cli.service.system_command import systemd_version
    from llmd.cli.service.units import ServicePlan, checked_models
    from llmd.config.listening import listening_addresses

    file = config_file.resolve() if config_file else None
    settings = _settings(file, is_system=is_system)
    limits = settings.config.server.limits
    return ServicePlan(
        command=launcher(),
        addresses=listening_addresses(settings),
        models=checked_models(tuple(map(named, models))),
        config_file=file,
        is_system=is_system,
        environment=kept_variables(os.environ),
        groups=tuple(name for name in DEVICE_GROUPS if _exists(name)),
        drain_s=limits.drain_s,
        engine_timeout_s=limits.engine_timeout_s,
        systemd_version=systemd_version(),
    )


def agent(models: tuple[str, ...], config_file: Path | None) -> LaunchAgent:
    """Return the launchd agent of this installation."""
    from llmd.cli.service.launch_agent import LaunchAgent
    from llmd.cli.service.units import checked_models

    settings = read_settings(config_file)
    config = ["--config", str(config_file.resolve())] if config_file else []
    words = ["--", *checked_models(tuple(map(named, models)))] if models else []
    return LaunchAgent(
        (*launcher(), "-v", "serve", *config, *words),
        settings.directories.log,
        kept_variables(os.environ),
    )


def check_reachable(program: str) -> None:
    """Raises `ConfigError` if the service of the system cannot run llmd, or the Python that runs it."""
    if found := unreachable_program((program, sys.executable)):
        file, reason = found
        raise ConfigError(
            f"the service needs {file}, but {reason}",
            hint="install llmd in a folder for all users, such as /opt/llmd, with a Python that all users may run,"
            " such as /usr/bin/python3",
        )


def check_free(addresses: Sequence[Address]) -> None:
    """Raises `ConfigError` if a program already listens at one of the addresses."""
    from llmd.client import find_daemon

    try:
        address = find_daemon(addresses)
    except DaemonUnreachableError:
        return
    error = ConfigError(
        f"a program already listens at {address}",
        hint="if it is a daemon, stop it with `llmd stop --daemon`; otherwise set addr in config.toml",
    )
    error.exit_code = EXIT_CONFLICT
    raise error


def kept_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process that the service needs, too."""
    return {name: environ[name] for name in KEPT if environ.get(name)}


def _settings(file: Path | None, *, is_system: bool) -> Settings:
    if not is_system:
        return read_settings(file)
    from llmd.cli.service.units import SYSTEM_DIRECTORIES
    from llmd.config import load_settings

    return load_settings(environ={}, directories=SYSTEM_DIRECTORIES, file=file)


def _exists(group: str) -> bool:
    try:
        grp.getgrnam(group)
    except KeyError:
        return False
    return True


def _install_agent(agent: LaunchAgent, *, only_print: bool) -> None:
    from llmd.cli.service.launch_agent import agent_path, bootout, bootstrap
    from llmd.cli.service.system_command import run, succeeds

    path = agent_path(Path.home())
    if only_print:
        _print({path: agent.content()})
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    agent.log.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(agent.content())
    succeeds(bootout(os.getuid()))  # an earlier installation
    run(bootstrap(path, os.getuid()))
    click.echo(f"installed {path}")


def _print(files: Mapping[Path, bytes]) -> None:
    for path, content in files.items():
        click.echo(f"# {path}\n{content.decode()}")


def _notes(*, is_system: bool) -> str:
    if is_system:
        return (
            "members of the group llmd may use the socket: sudo usermod -aG llmd NAME\n"
            "settings are in /etc/llmd/config.toml, models in /var/lib/llmd/models"
        )
    return "it runs while you are logged in; `loginctl enable-linger` keeps it running"
