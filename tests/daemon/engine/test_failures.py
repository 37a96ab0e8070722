from __future__ import annotations

import pytest

from llmd.api.errors import (
    CheckpointError,
    LlmdError,
    MemoryBudgetError,
    RequestError,
    UnsupportedModelError,
)
from llmd.api.messages import Failed
from llmd.engine.failures import error_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MemoryBudgetError", MemoryBudgetError),
        ("UnsupportedModelError", UnsupportedModelError),
        ("CheckpointError", CheckpointError),
        ("ContextLengthError", RequestError),
        ("SystemExit", LlmdError),
    ],
)
def test_engine_errors_keep_class_message_and_hint(name: str, kind: type[LlmdError]) -> None:
    error = error_of(Failed(None, name, "model.safetensors: w: is cut short", "pull it again"))
    assert type(error) is kind
    assert error.message == "model.safetensors: w: is cut short"
    assert error.hint == "pull it again"
