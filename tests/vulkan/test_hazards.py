"""Synchronization validation of the Khronos layer is silent, and finds a missing barrier or semaphore."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAYER = "VK_LAYER_KHRONOS_validation"
SETTINGS = """khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = stdout
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
"""
PATHS = os.pathsep.join(str(path) for path in map(Path, sys.path))

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("physical"),
    pytest.mark.skipif(
        not Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists(),
        reason="needs vulkan-validationlayers",
    ),
]


def validated(tmp_path: Path, *options: str) -> str:
    """Run `validated.py` under the layer and return its output."""
    (tmp_path / "vk_layer_settings.txt").write_text(SETTINGS)
    environment = {
        **os.environ,
        "VK_INSTANCE_LAYERS": LAYER,
        "VK_LAYER_SETTINGS_PATH": str(tmp_path),
        "PYTHONPATH": PATHS,
    }
    command = [sys.executable, "-m", "tests.vulkan.validated", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_validation_is_silent(tmp_path: Path) -> None:
    output = validated(tmp_path)
    assert output.splitlines()[-1].endswith("results, 0 problems")
    assert "Validation" not in output


def test_a_missing_barrier_is_found(tmp_path: Path) -> None:
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in validated(tmp_path, "--no-barrier")


def test_a_missing_semaphore_is_found(tmp_path: Path) -> None:
    output = validated(tmp_path, "--no-semaphores")
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in output  # weights are read before they are copied
    assert "SYNC-HAZARD-WRITE-AFTER-WRITE" in output  # the next copy overwrites them
