"""Which service a command is about: that of the user, that of the system, or a launchd agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from llmd.api.errors import NotFoundError, NotPermittedError
from llmd.cli.service.systemd_service import SystemdService, is_root

SYSTEM = click.option(
    "--system", "is_system", is_flag=True, help="The service of the whole machine instead of your own."
)


def is_macos() -> bool:
    return sys.platform == "darwin"


def named_service(*, is_system: bool) -> SystemdService:
    """Return the service of the user or of the system."""
    return SystemdService.of_system() if is_system else SystemdService.of_user(os.environ, Path.home())


def installed_service(*, is_system: bool) -> SystemdService:
    """Return the service that is installed; the user's own comes first.

    Raises:
        NotFoundError: none is installed.
    """
    services = [named_service(is_system=True)]
    if not is_system:
        services.insert(0, named_service(is_system=False))
    for service in services:
        if service.is_installed:
            return service
    raise NotFoundError(
        "the service is not installed",
        hint="`llmd service install` installs it, with --system for the whole machine",
    )


def check_may_change(service: SystemdService) -> None:
    """Raises `NotPermittedError` if only root may change the service."""
    if service.is_system and not is_root():
        raise NotPermittedError(
            "only root may change services of the system", hint="run the command with sudo"
        )
