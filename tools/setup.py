"""``make setup``: everything that building and testing llmd needs, from a bare system Python.

Runs on the system's Python with the standard library alone. Steps whose inputs have not changed are
passed over, so a second run takes well under a second and needs no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.stamps import Stamps
from tools.system_packages import install_missing
from tools.wheelhouse import DISTRIBUTIONS, Wheelhouse

UV = "uv==0.13.8"
ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
ENVIRONMENT = ROOT / ".venv"


def main() -> None:
    """Bring the workspace up to date."""
    if sys.version_info < (3, 11):
        raise SystemExit(f"setup: llmd needs Python 3.11 or newer, {sys.executable} is {sys.version.split()[0]}")
    install_missing()
    # uv takes the Python that is here, and trusts the certificates that pip trusts.
    os.environ |= {"UV_PYTHON_DOWNLOADS": "never", "UV_PROJECT_ENVIRONMENT": str(ENVIRONMENT)}
    os.environ.setdefault("UV_SYSTEM_CERTS", "true")
    os.environ.pop("VIRTUAL_ENV", None)

    stamps = Stamps(TOOLS / "stamps")
    python = f"{sys.version} {sys.base_prefix}"
    lock = [ROOT / "uv.lock", ROOT / "pyproject.toml", *(ROOT / name / "pyproject.toml" for name in DISTRIBUTIONS)]
    native = ROOT / "plugins" / "backend_cpu"
    wheels = Wheelhouse(ROOT, TOOLS / "bin" / "uv", TOOLS / "bin" / "pip", ENVIRONMENT / "bin" / "python")

    stamps.run("uv", [], install_uv, facts=python + UV)
    stamps.run("environment", [*lock, native / "CMakeLists.txt", native / "csrc"], sync, facts=python)
    stamps.run("wheelhouse", lock, wheels.download, facts=python)
    for name in DISTRIBUTIONS:
        inputs = [ROOT / name, *lock]
        stamps.run(f"wheel of {name}".replace("/", "."), inputs, lambda name=name: wheels.build(name), facts=python)


def install_uv() -> None:
    """Make the private environment that holds uv: a bare Debian has no pip and guards its own packages."""
    shutil.rmtree(TOOLS, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
    subprocess.run([TOOLS / "bin" / "pip", "install", "--quiet", UV], check=True)


def sync() -> None:
    """Make ``.venv`` exactly what ``uv.lock`` says, our distributions editable, the extension compiled."""
    command = [TOOLS / "bin" / "uv", "sync", "--locked", "--quiet", "--python", sys.executable]
    subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
