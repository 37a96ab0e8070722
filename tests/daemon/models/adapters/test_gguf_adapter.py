"""Adapters in GGUF files: what they state, and what is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, LlmdError, UnsupportedModelError
from llmd.models.adapters.gguf_adapter import open_gguf
from llmd.models.gguf.adapter_form import GgufForm
from tests.golden.adapters import ADAPTERS
from tests.golden.gguf_adapter import write_gguf_adapter

CASE = ADAPTERS[0]
FORM = GgufForm("llama", CASE.base.config)


@pytest.mark.parametrize(("alpha", "scale"), [(8.0, 2.0), (2.0, 0.5), (0.0, 1.0)])
def test_changes_have_the_scale_that_llama_cpp_takes(tmp_path: Path, alpha: float, scale: float) -> None:
    path = write_gguf_adapter(CASE, tmp_path / "a.gguf", {"adapter.lora.alpha": alpha})
    with closing(open_gguf("sql", path, FORM)) as adapter:
        change = adapter.changes["blk.0.attn_q"]
        assert (change.rank, change.scale) == (4, scale)
        assert change.order is None, "the file has the order of rows of GGUF files"
        assert adapter.entry(change.a).shape == (4, CASE.base.config["hidden_size"])


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"general.type": "model"}, UnsupportedModelError, "general.type is model"),
        ({"adapter.type": "vera"}, UnsupportedModelError, "adapter.type vera"),
        (
            {"general.architecture": "qwen2"},
            CheckpointError,
            "for the architecture qwen2, the model has llama",
        ),
        ({"adapter.lora.alpha": "eight"}, CheckpointError, "adapter.lora.alpha"),
        ({"adapter.alora.invocation_tokens": [1, 2]}, UnsupportedModelError, "activated adapter"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, changes: dict[str, Any], kind: type[LlmdError], message: str
) -> None:
    path = write_gguf_adapter(CASE, tmp_path / "a.gguf", changes)
    with pytest.raises(kind, match=message):
        open_gguf("sql", path, FORM)


@pytest.mark.parametrize(
    ("drop", "add", "message"),
    [
        ("blk.0.attn_q.weight.lora_b", "", r"attn_q\.weight\.lora_b: the tensor is missing"),
        ("", "output_norm.weight", r"output_norm\.weight: llmd applies lora_a and lora_b"),
    ],
)
def test_tensors_must_be_pairs(tmp_path: Path, drop: str, add: str, message: str) -> None:
    path = write_gguf_adapter(CASE, tmp_path / "a.gguf", drop=drop, add=add)
    with pytest.raises(LlmdError, match=message):
        open_gguf("sql", path, FORM)
