"""Adapters are opened in the form that they have, and their tensors become those of the checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.adapters.adapter import AsTrained
from llmd.models.adapters.opening import add_adapters
from llmd.models.model_source import find_source
from tests.golden.adapters import ADAPTERS
from tests.golden.gguf_adapter import write_gguf_adapter
from tests.serving.adapters import write_adapter
from tests.serving.model import write_model


def test_tensors_of_each_adapter_begin_with_its_name(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    places = {name: str(write_adapter(tmp_path / name, model)) for name in ("sql", "formal")}
    source = find_source(model)
    with source.open_checkpoint() as checkpoint:
        before = set(checkpoint.tensors)
        first, second = add_adapters(checkpoint, places, source.adapter_form())
        added = set(checkpoint.tensors) - before
        assert added == {*first.header.entries, *second.header.entries}
        assert {name.partition(": ")[0] for name in added} == {"sql", "formal"}
        assert checkpoint.view(next(iter(first.header.entries))).size > 0


def test_a_gguf_adapter_is_for_gguf_models(tmp_path: Path) -> None:
    path = write_gguf_adapter(ADAPTERS[0], tmp_path / "adapter.gguf")
    refused = pytest.raises(UnsupportedModelError, match="is for a model in GGUF")
    with find_source(write_model(tmp_path / "model")).open_checkpoint() as checkpoint, refused:
        add_adapters(checkpoint, {"sql": str(path)}, AsTrained())
