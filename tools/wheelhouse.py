"""Fills ``wheelhouse/`` with our wheels, their runtime dependencies and the build back ends.

Packaging and installation tests install from it without an index, to test what a user gets.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SET_UP = ("daemon", "plugins/backend_cpu", "plugins/transport", "tui")
"""Folders of the distributions that ``make setup`` installs."""

DISTRIBUTIONS = (*SET_UP, "plugins/backend_cuda", "plugins/backend_vulkan")
"""Those that have a wheel here and in a release. The last two are for machines with a GPU."""


@dataclass(frozen=True)
class Wheelhouse:
    """A folder of wheels and the tools that fill it."""

    root: Path
    uv: Path
    pip: Path
    python: Path

    @property
    def folder(self) -> Path:
        return self.root / "wheelhouse"

    def download(self) -> None:
        """Download the locked wheels of other projects, verified with the hashes in ``uv.lock``."""
        fresh = self.root / "wheelhouse.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        locked = fresh / "requirements.txt"
        self.folder.mkdir(exist_ok=True)
        self._run(
            self.uv, "export", "--quiet", "--locked", "--all-packages", "--no-emit-workspace",
            "--no-default-groups", "--group", "wheelhouse", "--output-file", locked,
        )  # fmt: skip
        self._run(
            self.pip, "download", "-qq", "--no-deps", "--require-hashes", "--only-binary", ":all:",
            "--find-links", self.folder, "--dest", fresh, "--requirement", locked,
        )  # fmt: skip
        shutil.rmtree(self.folder)
        fresh.rename(self.folder)

    def build(self, distribution: str) -> None:
        """Build the wheel of one of our distributions, named by its folder, and delete its old wheel."""
        fresh = self.root / "wheelhouse.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._run(
            self.uv, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", self.python,
            "--out-dir", fresh, self.root / distribution,
        )  # fmt: skip
        (wheel,) = fresh.glob("*.whl")
        for stale in self.folder.glob(f"{wheel.name.split('-')[0]}-*.whl"):
            stale.unlink()
        wheel.rename(self.folder / wheel.name)
        shutil.rmtree(fresh)

    def _run(self, *command: str | Path) -> None:
        subprocess.run([str(word) for word in command], check=True, cwd=self.root)
