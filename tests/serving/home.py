"""Runs ``llmd`` in separate processes, as a user does, with private folders and sockets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.serving.model import write_model
from tests.serving.probed import seed_cache

LLMD = (sys.executable, "-m", "llmd.cli.main")
STOP_LIMIT_S = 20


class Home(Struct, frozen=True):
    """A user's folders, the tiny model ``tiny`` among them."""

    folder: Path
    environment: dict[str, str]

    @property
    def socket(self) -> Path:
        return self.folder / "llmd" / "llmd.sock"

    @property
    def state(self) -> Path:
        return self.folder / "state" / "llmd"

    def llmd(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            (*LLMD, *arguments),
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, *arguments: str) -> dict[str, Any]:
        """What a command that succeeds prints with ``--json``."""
        done = self.llmd(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        decoded: dict[str, Any] = json.loads(done.stdout)
        return decoded

    def loaded(self) -> dict[str, Any]:
        """The only loaded model, as ``llmd ps`` tells it."""
        (row,) = self.json("ps")["models"]
        assert isinstance(row, dict)
        return row

    @contextmanager
    def serve(self, *arguments: str) -> Iterator[Served]:
        """A daemon in the foreground of a process; it is ended with the block."""
        with subprocess.Popen(
            (*LLMD, "serve", *arguments), stdout=subprocess.PIPE, text=True, env=self.environment
        ) as process:
            try:
                assert process.stdout is not None
                yield Served(process, process.stdout.readline().strip())
            finally:
                process.terminate()


class Served(Struct, frozen=True):
    """A daemon, and the line that it printed when it was ready."""

    process: subprocess.Popen[str]
    line: str

    @property
    def url(self) -> str:
        """Where it answers HTTP."""
        found = re.search(r"http://[^\s;]+", self.line)
        assert found is not None, self.line
        return found.group()

    def end(self) -> int:
        """Send SIGTERM; returns the exit status."""
        self.process.terminate()
        return self.process.wait(STOP_LIMIT_S)


def make_home(folder: Path, cache: Path) -> Home:
    """A home that is served on a Unix socket alone; ``cache`` may be shared. One that is new has probes."""
    kinds = ("CONFIG", "DATA", "STATE")
    home = Home(
        folder,
        {name: value for name, value in os.environ.items() if not name.startswith(("LLMD_", "XDG_"))}
        | {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in kinds}
        | {"XDG_RUNTIME_DIR": str(folder), "XDG_CACHE_HOME": str(cache)}
        | {"LLMD_ADDR": f"unix:{folder}/llmd/llmd.sock", "LLMD_KV_MEMORY": "64MiB"},
    )
    write_model(folder / "data" / "llmd" / "models" / "tiny")
    seed_cache(cache / "llmd")
    return home


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache shared by all homes."""
    folder = tmp_path_factory.mktemp("probes")
    seed_cache(folder / "llmd")
    return folder


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Home:
    """The folders of a user who runs ``llmd`` in separate processes."""
    return make_home(tmp_path_factory.mktemp("home"), probes)
