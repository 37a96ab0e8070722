from __future__ import annotations

import math
import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmd.api import LlmdError
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.gguf.source import GgufSource
from llmd.models.open_model import open_model
from tests.corrupt.untouchable import map_untouchable
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.models.encoders import bert, roberta
from tests.golden.models.tiny import TinyModel

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}


def test_is_found_where_there_is_a_gguf_file(tmp_path: Path) -> None:
    assert GgufSource.find(tmp_path) is None
    assert GgufSource.find(tmp_path / "model.safetensors") is None
    path = write_gguf(tiny_model("llama-f16"), tmp_path / "m.gguf")
    for given in (tmp_path, path):
        source = GgufSource.find(given)
        assert source == GgufSource(given)
        assert source.config_file == path
        assert source.read_metadata()["general.architecture"] == "llama"


def test_opens_a_model_without_reading_a_weight(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama3-gqa-tied"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    opened = open_model(path, ARCHITECTURES, mapper=map_untouchable)
    with opened.checkpoint as checkpoint:
        assert opened.embedding is None
        assert opened.notices == ()
        assert checkpoint.tensors["blk.1.attn_q.weight"].format == "q8_0"
        assert checkpoint.tensors["blk.1.attn_q.weight"].size_bytes == 64 * 2 * 34


def test_a_configuration_is_read_anew_when_the_file_is_another(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama-f16"), tmp_path / "m.gguf")
    source = GgufSource(path)
    source.read_config()["hidden_size"] = 0  # changes only this copy
    assert source.read_config()["num_hidden_layers"] == 3
    write_gguf(tiny_model("llama2-mha"), path)
    assert source.read_config()["num_hidden_layers"] == 4


def test_a_configuration_of_a_file_that_was_just_written_is_not_cached(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama-f16"), tmp_path / "m.gguf")
    source, written_ns = GgufSource(path), path.stat().st_mtime_ns
    assert source.read_config()["rms_norm_eps"] != 0.25
    size, content = path.stat().st_size, path.read_bytes()
    key = b"llama.attention.layer_norm_rms_epsilon"
    place = content.index(key) + len(key) + 4
    path.write_bytes(content[:place] + np.float32(0.25).tobytes() + content[place + 4 :])
    os.utime(path, ns=(written_ns, written_ns))  # as if within one tick of the file system's clock
    assert path.stat().st_size == size
    assert source.read_config()["rms_norm_eps"] == 0.25


@pytest.mark.parametrize("config", [bert(), roberta()], ids=["bert", "roberta"])
@pytest.mark.parametrize(("pooling", "expected"), [("cls", "cls"), ("last", "last"), (None, "mean")])
def test_an_encoder_embeds_as_its_file_says(
    tmp_path: Path, config: dict[str, object], pooling: str | None, expected: str
) -> None:
    path = write_gguf(TinyModel("encoder", config), tmp_path / "m.gguf", pooling=pooling)
    opened = open_model(path, ARCHITECTURES)
    with opened.checkpoint:
        assert opened.embedding is not None
        assert opened.embedding.poolings == (expected,)
        assert opened.embedding.normalizes


def test_a_decoder_that_pools_embeds(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("qwen3-tied"), tmp_path / "m.gguf", pooling="last")
    opened = open_model(path, ARCHITECTURES)
    with opened.checkpoint:
        assert opened.embedding is not None
        assert opened.embedding.poolings == ("last",)
        assert not opened.plan.has_head


ODD = (
    0,
    -1,
    1,
    3,
    2**31 - 1,
    -(2**31),
    True,
    math.nan,
    math.inf,
    -0.5,
    1e-40,
    "",
    "x" * 300,
    "\x1b[2J",
    [1, 2],
    [True, False],
)


@pytest.mark.parametrize(
    ("name", "states_heads"),
    [
        ("llama-yarn-rope", True),
        ("phi3-longrope-short", True),
        ("gemma2", True),
        ("gemma3", False),
        ("granite", False),
    ],
)
def test_no_value_of_a_key_raises_another_error(tmp_path: Path, name: str, *, states_heads: bool) -> None:
    path = write_gguf(tiny_model(name), tmp_path / "m.gguf")
    architecture = str(GgufSource(path).read_metadata()["general.architecture"])
    heads = (f"{architecture}.attention.{kind}_length" for kind in ("key", "value"))
    base = {} if states_heads else dict.fromkeys(heads)
    optional = ("expert_count", "pooling_type", "attention.sliding_window_pattern", "attention.scale")
    keys = [*GgufSource(path).read_metadata(), *(f"{architecture}.{key}" for key in optional)]
    for key in keys:
        for value in ODD:
            write_gguf(tiny_model(name), path, changes={**base, key: value})
            error = refusal(path)
            assert error is None or (error.hint and error.message.isprintable()), (key, value)


def refusal(path: Path) -> LlmdError | None:
    """Return why the model cannot be opened."""
    try:
        open_model(path, ARCHITECTURES).checkpoint.close()
    except LlmdError as error:
        return error
    return None
