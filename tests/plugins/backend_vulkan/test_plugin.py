"""The entry point describes the backend without importing a toolkit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmd.api import DeviceOptions, NotFoundError
from llmd.api.plugins import API_VERSION
from llmd_backend_vulkan import plugin

SOURCES = Path(plugin.__file__).parents[1]
HEAVY = ("numpy", "kp")


def test_the_backend_is_described() -> None:
    (backend,) = plugin.llmd_backends()
    assert plugin.LLMD_API == API_VERSION
    assert backend.name == "vulkan"
    assert backend.driver == "the Vulkan driver"


def test_the_description_imports_no_toolkit() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n"
        "import llmd_backend_vulkan.plugin as plugin; plugin.llmd_backends()\n"
        f"print(set({HEAVY!r}) & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_probe_never_fails() -> None:
    (backend,) = plugin.llmd_backends()
    assert all(info.kind == "vulkan" and (info.score > 0 or info.reason) for info in backend.probe())


@pytest.mark.usefixtures("physical")
def test_a_device_is_opened_by_name() -> None:
    (backend,) = plugin.llmd_backends()
    opened = backend.open("vulkan:0", DeviceOptions())
    assert opened.info.name == "vulkan:0"
    opened.close()
    with pytest.raises(NotFoundError):
        backend.open("vulkan:77", DeviceOptions())
