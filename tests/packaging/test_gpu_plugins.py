"""The plugins of GPUs are installed next to a daemon, and say what they lack or what they found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import ROOT, Environment, EnvironmentFactory

pytestmark = pytest.mark.packaging

NOT_EDITABLE = "--no-sources"
"""The sources of the workspace are not used for what a plugin depends on."""
KOMPUTE = ROOT / ".tools" / "kompute"


@pytest.fixture(scope="module")
def with_gpus(new_environment: EnvironmentFactory, wheelhouse: Path) -> Environment:
    """A daemon with both plugins, built from their sources, and nothing that they call."""
    environment = new_environment("llmd-daemon")
    plugins = (str(ROOT / "plugins" / name) for name in ("backend_cuda", "backend_vulkan"))
    environment.install(wheelhouse, NOT_EDITABLE, *plugins)
    return environment


def test_devices_say_why_they_cannot_be_used(with_gpus: Environment) -> None:
    listed = with_gpus.run("llmd", "devices")
    assert "vulkan:0" in listed
    assert "Kompute" in listed or "Vulkan" in listed
    assert "cuda:0" in listed
    assert "CuPy" in listed


def test_shaders_are_in_the_wheel(with_gpus: Environment) -> None:
    code = "from llmd_backend_vulkan.shaders import spirv; print(len(spirv('linear')) > 1000)"
    assert with_gpus.run("python", "-c", code).strip() == "True"


@pytest.mark.exhaustive
def test_with_kompute_a_vulkan_device_is_found(new_environment: EnvironmentFactory, wheelhouse: Path) -> None:
    wheels = list(KOMPUTE.glob("kp-*.whl"))
    if not wheels or not any(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")):
        pytest.skip("needs Kompute and mesa-vulkan-drivers")
    environment = new_environment("llmd-daemon")
    environment.install(wheelhouse, NOT_EDITABLE, str(ROOT / "plugins" / "backend_vulkan"), str(wheels[0]))
    listed = environment.run("llmd", "devices")
    (line,) = [line for line in listed.splitlines() if line.lstrip().startswith("vulkan:0")]
    assert line.split()[-1] == "ok"
