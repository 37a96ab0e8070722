"""Compiles the shaders of the Vulkan backend; run as ``python -m tools.shaders``.

``shaders/NAME.comp`` becomes ``NAME.spv``, SPIR-V 1.3, the version of Vulkan 1.1. ``manifest.json`` has the
digest of the source, with what it includes, that each was compiled from: a test compares it with the sources.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "plugins/backend_vulkan/src/llmd_backend_vulkan/shaders"
COMPILER = ("glslc", "--target-env=vulkan1.1", "-O")
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def main() -> None:
    """Compile every shader whose source has changed, and delete what no source is left of."""
    compiled = manifest(FOLDER)
    wanted = {source.stem: digest(source) for source in sorted(FOLDER.glob("*.comp"))}
    for name, found in wanted.items():
        target = FOLDER / f"{name}.spv"
        if compiled.get(name) == found and target.exists():
            continue
        print(f"shaders: {name}")
        command = [*COMPILER, str(FOLDER / f"{name}.comp"), "-o", str(target)]
        if subprocess.run(command, check=False).returncode:
            sys.exit(1)
    for stale in {path.stem for path in FOLDER.glob("*.spv")} - wanted.keys():
        (FOLDER / f"{stale}.spv").unlink()
    (FOLDER / "manifest.json").write_text(json.dumps(wanted, indent=2) + "\n")


def manifest(folder: Path) -> dict[str, str]:
    """Return the digests of the sources that the shaders in a folder were compiled from."""
    path = folder / "manifest.json"
    if not path.exists():
        return {}
    read: dict[str, str] = json.loads(path.read_text())
    return read


def digest(source: Path) -> str:
    """Return the SHA-256 of a shader's source, with the files that it includes in place of their names."""
    return hashlib.sha256(_expanded(source).encode()).hexdigest()


def _expanded(source: Path) -> str:
    return _INCLUDE.sub(lambda found: _expanded(source.parent / found[1]), source.read_text())


if __name__ == "__main__":
    main()
