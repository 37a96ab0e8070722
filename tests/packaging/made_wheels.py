"""Wheels of small distributions, written without a build."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PLUGIN = """
from llmd.api import Command, hookimpl

LLMD_API = 2


@hookimpl
def llmd_commands():
    return [Command("{command}", "Do nothing.", lambda: None)]
"""

CRASHES = "import os\nos.abort()\n"
"""The source of a plugin whose probe fails."""

_HANGS = (
    PLUGIN.format(command="late")
    + """
import pathlib, time
if ("staged" in __file__) == {staged}:
    pathlib.Path.home().joinpath("reached").touch()
    time.sleep(600)
"""
)
HANGS_WHERE_IT_IS_TRIED = _HANGS.format(staged=True)
"""The source of a plugin that hangs before anything is installed, after it wrote ``~/reached``."""
HANGS_IN_PLACE = _HANGS.format(staged=False)
"""The source of a plugin that hangs once it is installed, after it wrote ``~/reached``."""


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    files: Mapping[str, str] = {},
    requires: Sequence[str] = (),
    plugins: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> Path:
    """Write a wheel into a folder. ``plugins`` and ``scripts`` are entry points, as in ``name = module``."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    groups = {"llmd": plugins, "console_scripts": scripts}
    points = "".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in groups.items() if lines)
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    content = dict(files) | {
        f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", *lines, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in content.items():
            archive.writestr(file, text)
        record = "".join(f"{file},{_digest(text)},{len(text.encode())}\n" for file, text in content.items())
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


def make_plugin(
    folder: Path,
    distribution: str,
    version: str = "1.0",
    *,
    name: str = "",
    source: str = "",
    requires: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> Path:
    """Write the wheel of a plugin with one module, by default one that adds a command.

    ``name`` is that of the plugin and of its command, by default that of its distribution.
    """
    module, name = distribution.replace("-", "_"), name or distribution
    files = {f"{module}.py": source or PLUGIN.format(command=name)}
    points = [f"{name} = {module}"]
    return make_wheel(
        folder, distribution, version, files=files, plugins=points, requires=requires, scripts=scripts
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
