"""The wheel of the Vulkan backend next to a daemon: its device is listed, with what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import ROOT
from tests.packaging.user import User

pytestmark = pytest.mark.packaging

KOMPUTE = ROOT / ".tools" / "kompute"


@pytest.fixture
def owner(user: User) -> Iterator[User]:
    """A user who has installed the backend without Kompute."""
    installed = user.json("plugins", "install", "llmd-backend-vulkan")
    assert [change["distribution"] for change in installed["changes"]] == ["llmd-backend-vulkan"]
    yield user
    assert user.llmd("plugins", "uninstall", "llmd-backend-vulkan", "--yes").returncode == 0


def device_of(user: User) -> dict[str, Any]:
    """Return the row of the Vulkan device."""
    rows = user.json("devices")["devices"]
    (device,) = (row for row in rows if row["plugin"] == "vulkan")
    assert {row["name"]: row["state"] for row in rows}["reference"] == "ok"
    return dict(device)


def test_without_kompute_or_a_driver_the_device_says_what_to_do(owner: User) -> None:
    device = device_of(owner)
    assert (device["name"], device["kind"], device["state"]) == ("vulkan:0", "vulkan", "unused")
    build = f"{owner.environment.prefix}/bin/python -m llmd_backend_vulkan.build_kompute"
    assert build in device["reason"] or "Vulkan" in device["reason"]


@pytest.mark.exhaustive
def test_with_kompute_the_device_of_the_processor_is_usable(owner: User, tmp_path: Path) -> None:
    wheels = list(KOMPUTE.glob("kp-*.whl"))
    if not wheels or not any(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")):
        pytest.skip("needs Kompute and mesa-vulkan-drivers")
    modules = tmp_path / "modules"
    owner.environment.uv("install", "--no-deps", "--target", str(modules), str(wheels[0]))
    found = replace(owner, extra={"PYTHONPATH": str(modules), "XDG_CACHE_HOME": str(tmp_path)})
    device = device_of(found)
    assert (device["name"], device["state"]) == ("vulkan:0", "ok")
