"""Someone who uses llmd in an environment of their own, without an index."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.environments import Environment


@dataclass(frozen=True)
class User:
    """Someone who types commands in an environment, with the wheelhouse in place of an index."""

    environment: Environment
    wheelhouse: Path
    index: Path | None = None
    """More wheels, in place of a package index."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """More environment variables."""

    def llmd(
        self, *arguments: str, only: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command. ``only`` are the variables for pip and uv, in place of those for the wheelhouse."""
        command = [str(self.environment.prefix / "bin" / "llmd"), *arguments]
        variables = self.variables() if only is None else {**self.environment.variables(), **only}
        return subprocess.run(command, check=False, capture_output=True, text=True, env=variables)

    def shell(self, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run commands in a folder, the environment active."""
        return subprocess.run(
            ["bash", "-c", script],
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            env=self.variables(),
        )

    def variables(self) -> dict[str, str]:
        """Those of the environment, with the wheelhouse and the index for pip and uv."""
        folders = [self.wheelhouse, *([self.index] if self.index else [])]
        links = [folder.as_uri() for folder in folders]  # pip would cut a path with a space in two
        wheels = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": " ".join(links)}
        wheels |= {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": ",".join(links)}
        return {**self.environment.variables(), **wheels, **self.extra}

    def freeze(self) -> list[str]:
        """Return what `pip freeze` prints."""
        return self.environment.run("python", "-m", "pip", "freeze", "--all").splitlines()

    def json(self, *arguments: str, code: int = 0) -> Any:
        done = self.llmd(*arguments, "--json")
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)


def snapshot(prefix: Path) -> dict[str, tuple[int, int, int]]:
    """Return mode, size and time of all files of an environment except bytecode and the user's own."""
    files = (path for part in ("bin", "lib") for path in (prefix / part).rglob("*") if path.is_file())
    stats = {path: path.stat() for path in files if path.suffix != ".pyc"}
    return {
        str(path.relative_to(prefix)): (stat.st_mode, stat.st_size, stat.st_mtime_ns)
        for path, stat in stats.items()
    }
