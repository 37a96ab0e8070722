"""A user with a trouble, who runs ``llmd doctor`` in a shell of their own and does what it says."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.serving.home import Home

COMMAND = re.compile(r"`([^`]+)`")
OVERRIDES_MODES = (1, 2)
"""The capabilities CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
PR_CAPBSET_DROP = 24


class Patient(Struct, frozen=True):
    """A user whose ``llmd`` is on the path."""

    home: Home
    environment: dict[str, str]

    @property
    def config(self) -> Path:
        return self.home.folder / "config" / "llmd" / "config.toml"

    def without_address(self) -> Patient:
        """Return the same user without a variable for the address, so that the file decides it."""
        left = {name: value for name, value in self.environment.items() if name != "LLMD_ADDR"}
        return Patient(self.home, left)

    def set_up(self, text: str) -> None:
        """Write the configuration file."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def shell(
        self, script: str, prepare: Callable[[], None] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run lines of shell."""
        return subprocess.run(
            ["bash", "-c", script],
            env=self.environment,
            preexec_fn=prepare,
            capture_output=True,
            text=True,
            check=False,
        )

    def examined(
        self, topic: str, before: str = "true", prepare: Callable[[], None] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return the checks of a topic by id; ``before`` are lines of shell that come first."""
        done = self.shell(f"{before}\nexec llmd doctor {topic} --json", prepare)
        assert done.returncode in {0, 8}, done.stderr
        return by_id(done.stdout)

    def cured(
        self,
        topic: str,
        name: str,
        *,
        plant: str = "true",
        cure: Callable[[str], str] = lambda command: command,
        prepare: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """See the trouble ``name``, do what its fix says, see that it is gone; return its check.

        ``plant`` are lines of shell that cause it. The fix is the first command of its text, typed as it is
        unless ``cure`` changes it.
        """
        found = self.examined(topic, plant, prepare)[name]
        assert found["status"] in {"warn", "fail"}, found
        command = cure(command_of(found["fix"]))
        after = self.examined(topic, f"{plant}\nset -e\n{{ {command}\n}} >&2\nset +e", prepare)
        assert after.get(name, {"status": "ok"})["status"] == "ok", (command, after[name])
        return found


def command_of(fix: str) -> str:
    """Return the first command in the text of a fix."""
    found = COMMAND.search(fix)
    assert found is not None, fix
    return found[1]


def by_id(output: str) -> dict[str, dict[str, Any]]:
    """Return the checks that ``doctor --json`` printed."""
    return {check["id"]: check for check in json.loads(output)["checks"]}


def as_others_are() -> None:
    """Take root's right to ignore the modes of files from a process that is about to start."""
    if os.geteuid() == 0:
        for capability in OVERRIDES_MODES:
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability)


def patient_at(home: Home, folder: Path) -> Patient:
    """Return a user of this home; ``folder`` gets the program."""
    program = folder / "llmd"
    folder.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m llmd.cli.main "$@"\n')
    program.chmod(0o755)
    return Patient(home, home.environment | {"PATH": f"{folder}:{home.environment['PATH']}"})
