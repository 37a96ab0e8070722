"""Prints the versions in ``uv.lock`` as constraints for pip: ``python3 constraints.py uv.lock``.

The container file runs it with Debian's Python; it imports only the standard library.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def constraints(lock: str) -> str:
    """Return a line for each package of an index; our own distributions, which are built, have none."""
    packages = tomllib.loads(lock)["package"]
    return "".join(constraint(package) for package in packages if "registry" in package["source"])


def constraint(package: Mapping[str, Any]) -> str:
    """Return the line of a package, with the Pythons that get this version if others get another one."""
    pythons = " or ".join(f"({marker})" for marker in package.get("resolution-markers", ()))
    return f"{package['name']}=={package['version']}{pythons and f' ; {pythons}'}\n"


if __name__ == "__main__":
    print(constraints(Path(sys.argv[1]).read_text()), end="")
