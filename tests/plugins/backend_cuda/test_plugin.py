"""The entry point describes the backend without importing a toolkit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmd.api import DeviceError, DeviceOptions, NotFoundError
from llmd.api.plugins import API_VERSION
from llmd_backend_cuda import plugin

SOURCES = Path(plugin.__file__).parents[1]
HEAVY = ("numpy", "cupy", "cupy_backends", "cuda", "platformdirs")


def test_the_backend_is_described() -> None:
    (backend,) = plugin.llmd_backends()
    assert plugin.LLMD_API == API_VERSION
    assert backend.name == "cuda"
    assert backend.driver == "the NVIDIA driver"
    assert backend.prepare is not None


def test_the_description_imports_no_toolkit() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n"
        "import llmd_backend_cuda.plugin as plugin; plugin.llmd_backends()\n"
        f"print({set(HEAVY)!r} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_probe_never_fails() -> None:
    (backend,) = plugin.llmd_backends()
    assert all(info.kind == "cuda" and (info.score > 0 or info.reason) for info in backend.probe())


def test_a_device_that_is_not_there_cannot_be_opened() -> None:
    (backend,) = plugin.llmd_backends()
    with pytest.raises((NotFoundError, DeviceError)) as caught:
        backend.open("cuda:99", DeviceOptions())
    assert caught.value.hint
