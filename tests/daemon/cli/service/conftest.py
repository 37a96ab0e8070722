"""A `systemctl` that records how it was called: most machines that run tests have no systemd to talk to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = """#!/bin/sh
echo "$(basename "$0") $*" >> {calls}
[ "$(basename "$0")" = journalctl ] && exec cat {folder}/journal
case "$*" in
    --version) echo "systemd 255 (255.4)" ;;
    *show*) cat {folder}/shown ;;
    *"$(cat {folder}/refused)"*) cat {folder}/words >&2; exit 1 ;;
esac
"""


@dataclass(frozen=True)
class Manager:
    """The programs of a service manager, which only record."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        """Take the calls since this was last read."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def refuse(self, words: str, message: str = "Failed to do that.") -> None:
        """Let calls with these words fail, with a message."""
        (self.folder / "refused").write_text(words)
        (self.folder / "words").write_text(message)

    def show(self, text: str) -> None:
        """Set what ``systemctl show`` prints."""
        (self.folder / "shown").write_text(text)

    def log(self, text: str) -> None:
        """Set what ``journalctl`` prints."""
        (self.folder / "journal").write_text(text)


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manager:
    made = Manager(tmp_path / "manager")
    made.folder.mkdir()
    made.refuse("nothing is refused")
    made.log("")
    for name in ("systemctl", "launchctl", "journalctl"):
        program = made.folder / name
        program.write_text(SCRIPT.format(calls=made.folder / "calls", folder=made.folder))
        program.chmod(0o755)
    monkeypatch.setattr("llmd.cli.service.system_command.BOOTED", made.folder)
    # A daemon of whoever runs the tests may listen at the default address.
    monkeypatch.setenv("LLMD_ADDR", f"unix:{tmp_path}/run/llmd/llmd.sock,127.0.0.1:1")
    monkeypatch.setenv("PATH", f"{made.folder}:/usr/bin:/bin")
    return made
