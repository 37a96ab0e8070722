"""Tiny models in GGUF files answer as in transformers, whose names, keys,
norms and order of rows are others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from llmd.api.messages import Load
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.checkpoint import write_safetensors
from tests.golden.engines import Architectures, engine, expected_rows, greedy_tokens, logits_error
from tests.golden.expected import nmse, read_expected, read_pooled
from tests.golden.gguf_latents import join_latents, older_keys
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.embedding import CASES as EMBEDDERS
from tests.golden.models.embedding import SCORERS, texts, write_pooling
from tests.golden.models.encoders import roberta
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import as_float32, draw_tensors
from tests.golden.test_embeddings import vectors
from tests.golden.test_scores import numbers

DEVICES = ("cpu", "reference")
BOUND = 1e-9
BOUND_OF_BLOCKS = 1e-3
"""For activations that are rounded to int8."""
WITHOUT_GGUF = {
    "llama-dynamic-rope-within": "dynamic RoPE",
    "llama-dynamic-rope-beyond": "dynamic RoPE",
    "llama-fatrelu": "activation is 'relu' and would become 'silu'",
    "qwen2-moe-every-other-layer": "experts",
    "qwen3-moe-tied": "experts",
    "qwen3-moe-one-expert": "normalized",
    "gpt-oss-floats": "experts",
    "qwen3-next-odd": "experts",
    "mamba2-odd": "least_time",
    "deepseek-v3-halves": "experts",
    "kimi-linear-groups": "linear attention have 2 heads and those of full attention 4",
    "kimi-linear-one-expert": "router groups is 4 and would become 1",
    "deepseek-v4": "layer 2 has a vector for 16 tokens",
    "deepseek-v4-odd": "layer 0 has a vector for 32 tokens",
    "fp8-deepseek-v4": "layer 1 has a vector for 16 tokens",
}
"""What llama.cpp does not know of a model, and what says so. Files of Qwen's mixtures have experts in every
layer and do not say whether their weights are normalised; those of gpt-oss do not state a limit of gates, and
those of Mamba-2 no bounds of times. In those of DeepSeek-V4, layers have a vector for 4 tokens or for 128.
"""
WINDOWS_THAT_GGUF_FORGETS = (
    "mistral-window",
    "mistral-window-of-block-size",
    "qwen2-window-above-first-layer",
)
CONVERTED = [case for case in CASES if case.name not in (*WITHOUT_GGUF, *WINDOWS_THAT_GGUF_FORGETS)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CONVERTED, ids=[case.name for case in CONVERTED])
def test_answers_are_those_of_transformers(
    case: TinyModel,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    path = write_gguf(case, tmp_path / "m.gguf")
    with engine(case, path, architectures, open_device, device=device) as core:
        assert logits_error(core, case, expected) <= BOUND
    with engine(case, path, architectures, open_device, device=device) as core:
        assert greedy_tokens(core, case) == expected.tokens.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [Type.Q8_0, Type.Q5_1, Type.Q4_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", ["llama3-gqa-tied", "phi3-window", "gemma2"])
def test_blocks_answer_as_the_numbers_that_they_stand_for(
    name: str,
    kind: Type,
    device: str,
    tmp_path: Path,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model(name)
    plain = write_rounded(case, kind, tmp_path, checkpoint(case))
    path = write_gguf(case, tmp_path / "m.gguf", kind)
    expected = read_expected(name)
    rows = []
    for model, named in ((plain, "reference"), (path, device)):
        with engine(case, model, architectures, open_device, device=named) as core:
            rows.append(expected_rows(core, case, expected))
    assert nmse(rows[1], rows[0]) <= BOUND_OF_BLOCKS
    assert nmse(rows[0], expected.logits) > BOUND_OF_BLOCKS or kind is Type.Q8_0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [None, Type.Q8_0], ids=["plain", "Q8_0"])
def test_older_files_have_keys_and_values_of_heads_in_one_tensor(
    kind: Type | None,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model("deepseek-v3")
    changes = older_keys(case.config)
    path = write_gguf(case, tmp_path / "m.gguf", kind, changes=changes, edit=join_latents)
    with engine(case, path, architectures, open_device, device=device) as core:
        bound = BOUND if kind is None else 1e-2
        assert logits_error(core, case, read_expected(case.name)) <= bound


def write_rounded(case: TinyModel, kind: Type, tmp_path: Path, original: Path) -> Path:
    """The model as transformers stores it, its matrices the float32 numbers that blocks of it stand for."""
    directory = tmp_path / "rounded"
    directory.mkdir()
    (directory / "config.json").write_bytes((original / "config.json").read_bytes())
    tensors = {name: as_float32(stored) for name, stored in draw_tensors(case)}
    rounded = {name: _rounded(tensor, kind) for name, tensor in tensors.items()}
    write_safetensors(directory / "model.safetensors", rounded, {})
    return directory


def _rounded(tensor: NDArray[np.float32], kind: Type) -> NDArray[np.float32]:
    if tensor.ndim < 2:
        return tensor
    return gguf.quants.dequantize(gguf.quants.quantize(tensor, kind), kind)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["bert-embedding", "qwen3-embedding"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_vectors_are_those_of_transformers(
    name: str,
    pooling: str,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = next(case for case in EMBEDDERS if case.name == name)
    path = write_gguf(case, tmp_path / "m.gguf", pooling=pooling)
    found = embed(case, path, device, architectures, open_device)
    assert nmse(found, read_pooled(name)[0][pooling]) <= BOUND


@pytest.mark.parametrize("device", DEVICES)
def test_scores_are_those_of_transformers(
    device: str, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case = next(case for case in SCORERS if case.name == "xlm-roberta-scores")
    path = write_gguf(case, tmp_path / "m.gguf", pooling="rank")
    load = Load(str(path), device=device, context_len=case.context_len)
    model = load_model(load, architectures, open_device, lambda _: None)
    assert isinstance(model.runner, EmbeddingCore)
    try:
        found = numbers(model.runner, case, 8, typed=True)
    finally:
        model.close()
    assert nmse(found, read_pooled(case.name)[0]["score"]) <= BOUND


def test_a_roberta_without_its_unused_positions_is_the_same(
    tmp_path: Path,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = TinyModel("xlm-roberta", roberta())
    write_pooling(directory := checkpoint(case), ["mean"])
    path = write_gguf(case, tmp_path / "m.gguf", pooling="mean")
    found = [embed(case, model, "reference", architectures, open_device) for model in (path, directory)]
    assert nmse(found[0], found[1]) <= BOUND


def embed(
    case: TinyModel, path: Path, device: str, architectures: Architectures, open_device: OpenDevice
) -> NDArray[np.float32]:
    """The vectors of the texts of a case."""
    load = Load(str(path), device=device, context_len=case.context_len, kv_dtype="f32")
    model = load_model(load, architectures, open_device, lambda _: None)
    assert isinstance(model.runner, EmbeddingCore)
    try:
        return vectors(model.runner, texts(case), 8)
    finally:
        model.close()
