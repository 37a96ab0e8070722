"""The wheel of the CUDA backend in an environment with a daemon: its device is listed, with what it lacks."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.user import User

pytestmark = pytest.mark.packaging

BINDINGS = ("cupy", "cupy_backends", "cupyx", "cuda", "nvidia")
"""What CuPy and NVRTC install."""
NO_CARD = r"this machine has no NVIDIA card|no driver for it|CUDA_VISIBLE_DEVICES hides all NVIDIA cards"


@pytest.fixture
def owner(user: User) -> Iterator[User]:
    """A user who has installed the backend without CuPy."""
    installed = user.json("plugins", "install", "llmd-backend-cuda")
    assert [change["distribution"] for change in installed["changes"]] == ["llmd-backend-cuda"]
    yield user
    assert user.llmd("plugins", "uninstall", "llmd-backend-cuda", "--yes").returncode == 0


def device_of(user: User) -> dict[str, Any]:
    """Return the row of the CUDA device."""
    rows = user.json("devices")["devices"]
    (device,) = (row for row in rows if row["plugin"] == "cuda")
    assert {row["name"]: row["state"] for row in rows}["reference"] == "ok"
    return dict(device)


def test_without_cupy_the_device_says_what_to_install(owner: User) -> None:
    device = device_of(owner)
    assert (device["name"], device["kind"], device["state"]) == ("cuda:0", "cuda", "unused")
    assert device["reason"].startswith("CuPy cannot be imported")
    assert f"{owner.environment.prefix}/bin/python -m pip install 'cupy-cuda12x" in device["reason"]


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="needs CuPy")
def test_without_a_card_the_device_says_so(owner: User, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    for name in BINDINGS:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        (folder,) = spec.submodule_search_locations
        (modules / name).symlink_to(folder)
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(modules), "XDG_CACHE_HOME": str(tmp_path)}
    device = device_of(replace(owner, extra=hidden))
    assert (device["name"], device["state"]) == ("cuda:0", "unused")
    assert re.search(NO_CARD, device["reason"]), device["reason"]
