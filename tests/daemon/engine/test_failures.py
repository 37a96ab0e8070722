from __future__ import annotations

import pytest

from llmd.api.errors import (
    CheckpointError,
    DeviceLostError,
    DeviceMemoryError,
    LlmdError,
    MemoryBudgetError,
    RequestError,
    UnsupportedModelError,
)
from llmd.api.results import Failed
from llmd.engine.failures import error_of, failure


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MemoryBudgetError", MemoryBudgetError),
        ("UnsupportedModelError", UnsupportedModelError),
        ("CheckpointError", CheckpointError),
        ("ContextLengthError", RequestError),
        ("DeviceMemoryError", DeviceMemoryError),
        ("SystemExit", LlmdError),
    ],
)
def test_engine_errors_keep_class_message_and_hint(name: str, kind: type[LlmdError]) -> None:
    error = error_of(Failed(None, name, "model.safetensors: w: is cut short", "pull it again"))
    assert type(error) is kind
    assert error.message == "model.safetensors: w: is cut short"
    assert error.hint == "pull it again"


def test_the_lost_devices_are_still_named() -> None:
    lost = DeviceLostError("the driver reports: reset", devices=("gpu:0", "gpu:1"), hint="see its log")
    error = error_of(failure(None, lost))
    assert isinstance(error, DeviceLostError)
    assert (error.devices, error.message, error.hint) == (lost.devices, lost.message, lost.hint)
