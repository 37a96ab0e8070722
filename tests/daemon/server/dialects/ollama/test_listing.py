from __future__ import annotations

import pytest

from llmd.api.messages import Loaded, StageReport
from llmd.server.dialects.ollama.listing import vram_bytes
from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon


@pytest.mark.parametrize("unix", [False, True])
def test_every_usable_model_is_listed_under_each_of_its_names(daemon: RunningDaemon, *, unix: bool) -> None:
    models = send(daemon, "GET", "/api/tags", unix=unix).json["models"]
    by_name = {model["name"]: model for model in models}
    assert {"other", MODEL, "gpt-4o"} <= set(by_name)
    entry = by_name[MODEL]
    assert {**entry, "name": "gpt-4o", "model": "gpt-4o"} == by_name["gpt-4o"]
    assert entry["model"] == MODEL
    assert entry["modified_at"].endswith("Z")
    assert entry["size"] > 0
    assert len(entry["digest"]) == 64
    assert entry["capabilities"] == ["completion", "tools"]
    assert entry["details"] == {
        "parent_model": "",
        "format": "safetensors",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": entry["details"]["parameter_size"],
        "quantization_level": "F32",
        "context_length": CONTEXT_LEN,
        "embedding_length": 64,
    }


def test_list_may_be_asked_for_by_head(daemon: RunningDaemon) -> None:
    assert send(daemon, "HEAD", "/api/tags").status == 200


def test_loaded_models_are_shown_with_their_memory_and_window(daemon: RunningDaemon) -> None:
    row = next(row for row in send(daemon, "GET", "/api/ps").json["models"] if row["name"] == MODEL)
    assert row["model"] == MODEL
    assert (
        row["size"]
        > send(daemon, "POST", "/api/show", {"model": MODEL}).json["model_info"]["general.parameter_count"]
    )
    assert row["size_vram"] == 0
    assert row["context_length"] == CONTEXT_LEN
    assert row["details"]["family"] == "llama"
    assert row["expires_at"].endswith("Z")


def test_memory_of_cards_is_vram() -> None:
    stages = (
        StageReport("cpu", "layer 0", 100, 10, 1),
        StageReport("cuda:0", "layers 1-2", 200, 20, 2, "card"),
    )
    loaded = Loaded("llama", 10, 512, 512, 1, ("f32",), stages, kv_tokens=512, load_s=0.1)
    assert vram_bytes(loaded) == 222
