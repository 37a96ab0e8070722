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


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    files: Mapping[str, str] = {},
    requires: Sequence[str] = (),
    plugin: str = "",
    scripts: Sequence[str] = (),
) -> Path:
    """Write a wheel into a folder. ``plugin`` is the module of its entry point for llmd, if it has one;
    ``scripts`` are entry points of the form ``name = module:function``.
    """
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    points = f"[llmd]\n{name} = {plugin}\n" if plugin else ""
    points += "".join(("[console_scripts]\n", *(f"{line}\n" for line in scripts))) if scripts else ""
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
    folder: Path, name: str, version: str = "1.0", *, source: str = "", **options: Sequence[str]
) -> Path:
    """Write the wheel of a plugin with one module, by default one that adds a command."""
    module = name.replace("-", "_")
    text = source or PLUGIN.format(command=name)
    return make_wheel(folder, name, version, files={f"{module}.py": text}, plugin=module, **options)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
