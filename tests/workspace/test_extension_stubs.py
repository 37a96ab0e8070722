"""The committed type stubs match the compiled extension."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMITTED = Path(__file__).parents[2] / "plugins" / "backend_cpu" / "src" / "llmd_backend_cpu" / "_ext.pyi"


def test_stubs_are_what_the_extension_declares(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "nanobind.stubgen",
        "-q",
        "-m",
        "llmd_backend_cpu._ext",
        "-O",
        str(tmp_path),
    ]
    subprocess.run(command, check=True)
    assert COMMITTED.read_text() == (tmp_path / "_ext.pyi").read_text(), "run `make stubs`"
