"""The packages that importing llmd loads, in fresh interpreters: static checks cannot see every import."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALLOWED = {"pluggy", "msgspec", "numpy", "typing_extensions"}
"""What the contracts need; msgspec loads typing_extensions if it is installed."""

REPORT = """
import sys
before = set(sys.modules)
import {module}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} - sys.stdlib_module_names))
"""


def packages_after_importing(module: str) -> set[str]:
    """Return the top-level packages outside the standard library that importing ``module`` loads."""
    command = [sys.executable, "-c", REPORT.format(module=module)]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize("root", ["llmd", "llmd_backend_cpu", "llmd_transport", "llmd_tui"])
def test_importing_a_root_imports_nothing_else(root: str) -> None:
    assert packages_after_importing(root) == {root}


def test_contracts_need_only_pluggy_msgspec_and_numpy() -> None:
    assert packages_after_importing("llmd.api") <= {"llmd", *ALLOWED}
