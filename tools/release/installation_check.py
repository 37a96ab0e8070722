"""Runs inside an installation of the release: loads every plugin, and the kernels of the CPU backend.

    python installation_check.py VERSION

Run by `tools.release.installation` on the Python and the machine that a wheel is for; imports nothing of the
workspace.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import entry_points, version

OURS = (
    "llmd-daemon",
    "llmd-backend-cpu",
    "llmd-backend-cuda",
    "llmd-backend-vulkan",
    "llmd-transport",
    "llmd-tui",
)


def main(expected: str) -> None:
    """Exit with 1 if a version is another one, a plugin does not load or a kernel case fails."""
    from llmd.api import DeviceOptions
    from llmd.testing.conformance import cases_for, check_device
    from llmd.testing.op_cases import op_cases

    found = {name: version(name) for name in OURS}
    if set(found.values()) != {expected}:
        sys.exit(f"installed are {found}, not {expected}")
    plugins = {point.name: point.load() for point in entry_points(group="llmd")}
    (backend,) = plugins["cpu"].llmd_backends()
    device = backend.open("cpu", DeviceOptions(2))
    results = list(check_device(device, cases_for(device.info, tuple(op_cases()))))
    failed = [f"{result.name}: {result.problem}" for result in results if result.problem]
    device.close()
    where = f"Python {platform.python_version()} on {platform.machine()}"
    print(
        f"{where}: {len(plugins)} plugins load; {len(results) - len(failed)} of {len(results)} kernel cases pass"
    )
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
