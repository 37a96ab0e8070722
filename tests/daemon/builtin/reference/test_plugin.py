from __future__ import annotations

import subprocess
import sys

import pytest

from llmd.api import API_VERSION, DeviceOptions, NotFoundError
from llmd.builtin.reference import plugin


def test_describes_the_backend_of_this_contract() -> None:
    (backend,) = plugin.llmd_backends()
    assert (plugin.LLMD_API, backend.name) == (API_VERSION, "reference")
    assert backend.open("reference", DeviceOptions()).info.name == backend.probe()[0].name


def test_another_device_name_is_refused() -> None:
    (backend,) = plugin.llmd_backends()
    with pytest.raises(NotFoundError, match="'other'"):
        backend.open("other", DeviceOptions())


def test_describing_it_imports_no_numerics() -> None:
    code = (
        "import sys; from llmd.builtin.reference import plugin; plugin.llmd_backends();"
        "print('llmd.builtin.reference.device' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )
