"""Prints the versions in ``uv.lock`` as constraints for pip: ``python3 constraints.py uv.lock``.

The container file runs it with Debian's Python; it imports only the standard library.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def constraints(lock: str) -> str:
    """Return a line for each package of an index; our own distributions, which are built, have none."""
    packages = tomllib.loads(lock)["package"]
    return "".join(
        f"{package['name']}=={package['version']}\n"
        for package in packages
        if "registry" in package["source"]
    )


if __name__ == "__main__":
    print(constraints(Path(sys.argv[1]).read_text()), end="")
