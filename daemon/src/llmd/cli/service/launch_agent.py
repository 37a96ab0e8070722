"""The property list of a launchd agent, which runs the daemon of one user on macOS."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

LABEL = "llmd"


def agent_path(home: Path) -> Path:
    """Return the file that launchd reads at login."""
    return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"


class LaunchAgent(Struct, frozen=True):
    """What the property list depends on."""

    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = {}

    def content(self) -> bytes:
        """Return the property list. launchd starts the daemon at login, and again after a failure."""
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": list(self.command),
                "EnvironmentVariables": dict(self.environment),
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                # Otherwise launchd may slow down computations.
                "ProcessType": "Interactive",
                "ExitTimeOut": 40,
                "StandardErrorPath": str(self.log),
                "StandardOutPath": "/dev/null",
            },
            sort_keys=False,
        )


def bootstrap(path: Path, uid: int) -> Sequence[str]:
    """Return the command that starts an agent."""
    return ("launchctl", "bootstrap", f"gui/{uid}", str(path))


def bootout(uid: int) -> Sequence[str]:
    """Return the command that ends an agent."""
    return ("launchctl", "bootout", f"gui/{uid}/{LABEL}")


def inspect(uid: int) -> Sequence[str]:
    """Return the command that fails unless the agent is loaded."""
    return ("launchctl", "print", f"gui/{uid}/{LABEL}")
