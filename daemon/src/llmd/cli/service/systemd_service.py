"""Installs and removes the units of a user's or of the system's systemd."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from llmd.api.errors import LlmdError, NotFoundError
from llmd.cli.service.start_error import start_error
from llmd.cli.service.system_command import check_systemd_runs, run, succeeds
from llmd.cli.service.units import (
    SERVICE,
    SOCKET,
    SYSTEM_DIRECTORIES,
    USER,
    ServicePlan,
    service_unit,
    socket_unit,
    user_declaration,
)

SYSTEM_UNITS = Path("/etc/systemd/system")
USERS = Path("/etc/sysusers.d/llmd.conf")
NO_SESSION = re.compile("Failed to connect to .*bus")
"""What systemctl says if the user's systemd does not run, as after su or sudo."""

SHOWN = ("Id", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "StatusText")


class UnitState(Struct, frozen=True):
    """One unit, as systemd sees it."""

    unit: str
    state: str
    """Such as ``active (running)``."""
    enabled: str
    pid: int | None
    restarts: int
    status: str
    """What the daemon says that it does."""


class SystemdService(Struct, frozen=True):
    """The units of one systemd, installed or not."""

    folder: Path
    is_system: bool = False

    @classmethod
    def of_user(cls, environ: Mapping[str, str], home: Path) -> SystemdService:
        """Return the service of the user who runs this process."""
        return cls(Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user")

    @classmethod
    def of_system(cls) -> SystemdService:
        return cls(SYSTEM_UNITS, is_system=True)

    @property
    def is_installed(self) -> bool:
        return (self.folder / SERVICE).exists()

    def files(self, plan: ServicePlan) -> dict[Path, str]:
        """Return the files of an installation with their texts."""
        users = {USERS: user_declaration()} if self.is_system else {}
        return {
            **users,
            self.folder / SOCKET: socket_unit(plan),
            self.folder / SERVICE: service_unit(plan),
        }

    def install(self, plan: ServicePlan) -> None:
        """Write the units and listen; replace an earlier installation, after its requests have ended.

        Raises:
            ConfigError: systemd does not run.
            LlmdError: systemd refused, or the daemon did not start; what was written is removed again, unless
                it replaced something.
        """
        check_systemd_runs()
        replaces = self.is_installed
        try:
            for path, text in self.files(plan).items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            if self.is_system:
                run(("systemd-sysusers", str(USERS)))
            self._systemctl("daemon-reload")
            if replaces:
                self._systemctl("stop", SOCKET, SERVICE)
                self._systemctl("disable", SERVICE)
            self._systemctl("enable", "--now", SOCKET)
            if plan.models:
                self._start()
        except LlmdError:
            if not replaces:
                with suppress(LlmdError):  # the first error says why
                    self._remove()
            raise

    def _start(self) -> None:
        """Start the daemon, now and with the machine.

        Raises:
            LlmdError: it did not start; the message is the daemon's own, if it is in the journal.
        """
        since_s = time.time()
        try:
            self._systemctl("enable", "--now", SERVICE)
        except LlmdError as error:
            raise start_error(self._journal, since_s) or error from None

    def uninstall(self) -> None:
        """Stop the daemon, after its requests have ended, and remove everything but models and settings.

        Raises:
            NotFoundError: it is not installed.
            LlmdError: systemd refused.
        """
        if not self.is_installed:
            flag = " --system" if self.is_system else ""
            other = "" if self.is_system else "; with --system, the commands are about that of the machine"
            raise NotFoundError(
                f"the service of {'the machine' if self.is_system else 'your user'} is not installed",
                hint=f"`llmd service install{flag}` installs it{other}",
            )
        self._remove()

    def states(self) -> list[UnitState]:
        """Return the state of each unit.

        Raises:
            LlmdError: systemd does not answer.
        """
        printed = self._systemctl("show", SOCKET, SERVICE, *(f"--property={name}" for name in SHOWN))
        return [_state(block) for block in printed.strip().split("\n\n")]

    def _remove(self) -> None:
        """Take as many steps as possible; the first error is raised at the end."""
        commands: list[tuple[str, ...]] = [("disable", "--now", SOCKET, SERVICE)]
        if self.is_system:
            commands.append(("clean", "--what=cache", SERVICE))
        errors = [error for command in commands if (error := self._try(*command))]
        for name in (SERVICE, SOCKET):
            (self.folder / name).unlink(missing_ok=True)
        errors += [error for error in [self._try("daemon-reload")] if error]
        self._try("reset-failed", SERVICE, SOCKET)  # fails where there is nothing to reset
        if not self.is_system:  # `install` has made them, unless they were there
            for folder in (self.folder, self.folder.parent):
                with suppress(OSError):  # there are other units in it, perhaps only links
                    folder.rmdir()
        if self.is_system:
            USERS.unlink(missing_ok=True)
            if succeeds(("getent", "passwd", USER)):
                run(("userdel", USER))
            _remove_if_empty(SYSTEM_DIRECTORIES.data)
            _remove_if_empty(SYSTEM_DIRECTORIES.user_socket.parent)
        if errors:
            raise errors[0]

    def _try(self, *arguments: str) -> LlmdError | None:
        try:
            self._systemctl(*arguments)
        except LlmdError as error:
            return error
        return None

    @property
    def _journal(self) -> tuple[str, ...]:
        """The command that shows the daemon's log."""
        return ("journalctl", *(() if self.is_system else ("--user",)), "-u", SERVICE)

    def _systemctl(self, *arguments: str) -> str:
        check_systemd_runs()
        user = () if self.is_system else ("--user",)
        log = " ".join((*self._journal, "-n", "20"))
        try:
            return run(("systemctl", *user, *arguments), f"the end of `{log}` may say why")
        except LlmdError as error:
            if user and NO_SESSION.search(error.message):
                hint = (
                    "log in directly, not with su or sudo; or use the service of the machine, with --system"
                )
                raise LlmdError(f"{error.message}; systemd has no session of your user", hint=hint) from None
            raise


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder and empty folders in it, if there is no file."""
    if folder.is_dir() and not any(path.is_file() for path in folder.rglob("*")):
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
        folder.rmdir()


def _state(block: str) -> UnitState:
    values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    pid = int(values.get("MainPID") or 0)
    return UnitState(
        unit=values["Id"],
        state=f"{values['ActiveState']} ({values['SubState']})",
        enabled=values.get("UnitFileState", ""),
        pid=pid or None,
        restarts=int(values.get("NRestarts") or 0),
        status=values.get("StatusText", ""),
    )


def is_root() -> bool:
    """Whether this process may change the system's services."""
    return os.geteuid() == 0
