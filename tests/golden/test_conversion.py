"""Tiny models that are converted answer as in transformers, and come back to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from llmd.api.errors import UnsupportedModelError
from llmd.engine.loading import OpenDevice
from llmd.models.gguf.rwkv7 import UNREAD
from tests.golden.checkpoint import write_checkpoint
from tests.golden.compressed_tensors import TABLE
from tests.golden.converted import converted, different, stored_tensors
from tests.golden.engines import Architectures, engine, expected_rows, greedy_tokens, logits_error
from tests.golden.expected import nmse, read_expected
from tests.golden.gguf_latents import join_latents, older_keys
from tests.golden.gguf_layout import stored_type, write_gguf
from tests.golden.meta_layout import write_meta, write_mistral
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.multimodal import as_written_now, write_phi4_multimodal, write_vision_language
from tests.golden.test_gguf import CONVERTED, WITHOUT_GGUF

BOUND = 1e-9
BOUND_OF_BLOCKS = 1e-3
"""For activations that are rounded to int8, and a table of embeddings that is rounded to f16."""
LOSE_BITS = {
    "gemma2": "norm",
    "gemma3": "norm",
    "granite-hybrid": "A_log",
    "kimi-linear-odd": "A_log",
    "falcon-h1": "",
    "falcon-h1-tied": "",
}
"""Parts of the names of tensors in f32 that files store as other numbers: norms of Gemma with 1 added, and
rates, not their logarithms. Multipliers change every matrix of Falcon-H1.
"""
ANY_ORDER = {"granite-hybrid": ("attn_q.weight", "attn_k.weight")}
"""Tensors whose rows llama.cpp's converter sorts for RoPE, although there is none."""
OWN_KEYS = {"general.type", "general.name", "general.file_type", "{}.vocab_size"}
"""Keys that are written in addition to those that
tests/golden/gguf_layout.py takes from llama.cpp's converter.
"""
MORE_KEYS = {
    "gemma3": {"gemma3.rope.freq_base_swa"},
    "gemma3-linear-rope": {"gemma3.rope.freq_base_swa"},
    "gpt-oss": {"general.quantization_version"},
    "gpt-oss-tied": {"general.quantization_version"},
    "qwen3-5-tied": {"qwen35.attention.recurrent_layers"},
    "qwen3-next-all-experts": {"qwen3next.attention.recurrent_layers"},
    "kimi-linear": {"kimi-linear.rope.freq_base"},
    "kimi-linear-odd": {"kimi-linear.rope.freq_base"},
    "kimi-linear-all-experts": {"kimi-linear.rope.freq_base"},
    "nemotron-h-moe": {"nemotron_h_moe.expert_gating_func"},
    "nemotron-h-latent": {"nemotron_h_moe.expert_gating_func"},
    "nemotron-h-one-expert": {"nemotron_h_moe.expert_gating_func"},
    "nemotron-h-all-experts": {"nemotron_h_moe.expert_gating_func"},
    "deepseek-v4-published": {f"deepseek4.rope.scaling.yarn_beta_{speed}" for speed in ("fast", "slow")},
}

Checkpoint = Callable[[TinyModel], Path]
OTHER_FACTORS = dict.fromkeys(
    ("falcon-h1", "falcon-h1-tied"),
    ("attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"),
)
"""Tensors of which llama.cpp's converter multiplies others for the same effect; numbers are rounded."""
UNEQUAL_SCALES = {"deepseek-v3-halves": "unequal mscale and mscale_all_dim"}
BOTH_WAYS = [case for case in CASES if case in CONVERTED]
parametrize_cases = pytest.mark.parametrize("case", BOTH_WAYS, ids=[case.name for case in BOTH_WAYS])


def contents(reader: gguf.GGUFReader) -> dict[str, Any]:
    """The keys of a file, without the three fields of its header that the package adds. A number may be
    stated for each layer.
    """
    keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    return {key: value[0] if _is_repeated(value) else value for key, value in keys.items()}


def _is_repeated(value: object) -> bool:
    return isinstance(value, list) and type(value[0]) is int and set(value) == {value[0]}


@parametrize_cases
def test_a_gguf_file_is_as_llama_cpp_converts_it(
    case: TinyModel, tmp_path: Path, checkpoint: Checkpoint, architectures: Architectures
) -> None:
    converted(checkpoint(case), tmp_path / "ours.gguf", architectures)
    ours = gguf.GGUFReader(tmp_path / "ours.gguf")
    theirs = gguf.GGUFReader(write_gguf(case, tmp_path / "theirs.gguf"))
    found, expected = ({t.name: t for t in reader.tensors} for reader in (ours, theirs))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        if name in UNREAD:
            continue
        assert found[name].tensor_type == tensor.tensor_type, name
        if case.name in OTHER_FACTORS and not name.endswith(OTHER_FACTORS[case.name]):
            assert np.allclose(compared(found[name]), compared(tensor), rtol=1e-6, atol=0), name
        elif not name.endswith(ANY_ORDER.get(case.name, OTHER_FACTORS.get(case.name, ()))):
            assert np.array_equal(compared(found[name]), compared(tensor)), name
    keys, known = contents(ours), contents(theirs)
    assert keys.items() >= {key: keys.get(key) for key in known}.items()
    assert {key: keys.get(key) for key in known} == known
    own = {key.format(known["general.architecture"]) for key in OWN_KEYS} | MORE_KEYS.get(case.name, set())
    assert keys.keys() - known.keys() == own | ({scaling_type(known)} & keys.keys() - known.keys())


def compared(tensor: gguf.ReaderTensor) -> NDArray[np.generic]:
    """The content of a tensor; of MXFP4 the numbers: tests/golden/gguf_layout.py loses the sign of 0."""
    data: NDArray[np.generic] = tensor.data
    return data if tensor.tensor_type != Type.MXFP4 else gguf.quants.dequantize(data, Type.MXFP4)


def scaling_type(keys: dict[str, Any]) -> str:
    """The key of the kind of scaling, which the converter leaves out
    where there are two lists of divisors.
    """
    return f"{keys['general.architecture']}.rope.scaling.type"


@pytest.mark.parametrize("device", ["cpu", "reference"])
@parametrize_cases
def test_a_gguf_file_answers_as_transformers(
    case: TinyModel,
    device: str,
    tmp_path: Path,
    checkpoint: Checkpoint,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    converted(checkpoint(case), tmp_path / "m.gguf", architectures)
    with engine(case, tmp_path / "m.gguf", architectures, open_device, device=device) as core:
        assert logits_error(core, case, expected) <= BOUND
        assert greedy_tokens(core, case) == expected.tokens.tolist()


@parametrize_cases
def test_a_model_comes_back_as_it_was_to_the_last_bit(
    case: TinyModel,
    tmp_path: Path,
    checkpoint: Checkpoint,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    source, back = checkpoint(case), tmp_path / "back"
    converted(source, tmp_path / "m.gguf", architectures)
    converted(tmp_path / "m.gguf", back, architectures)
    changed = different(stored_tensors(source), stored_tensors(back))
    assert [name for name in changed if LOSE_BITS.get(case.name, "/") not in name] == []
    rows = []
    for model in (source, back):
        with engine(case, model, architectures, open_device, device="reference") as core:
            rows.append(core.forward(np.array(case.prompt, np.int32)))
    assert nmse(rows[1], rows[0]) <= 1e-12
    exact = not changed and case.config.get("rope_scaling") is None and "gemma" not in case.name
    assert np.array_equal(rows[0], rows[1]) or not exact


@pytest.mark.parametrize(
    "name", [case.name for case in CASES if case not in BOTH_WAYS], ids=lambda name: name
)
def test_what_a_gguf_file_cannot_say_is_refused_by_its_name(
    name: str, tmp_path: Path, checkpoint: Checkpoint, architectures: Architectures
) -> None:
    refused = {**WITHOUT_GGUF, **UNEQUAL_SCALES}
    what = refused.get(name, r"layer \d: window is \d+ and would become None")
    with pytest.raises(UnsupportedModelError, match=what):
        converted(checkpoint(tiny_model(name)), tmp_path / "m.gguf", architectures)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_directory_is_rewritten_as_a_directory(
    case: TinyModel, tmp_path: Path, checkpoint: Checkpoint, architectures: Architectures
) -> None:
    source = checkpoint(case)
    converted(source, tmp_path / "copy", architectures)
    assert different(stored_tensors(source), stored_tensors(tmp_path / "copy")) == []
    converted(source, tmp_path / "wide", architectures, quant="f32")
    wide = stored_tensors(tmp_path / "wide")
    assert {dtype for name, (dtype, _) in wide.items() if not name.endswith(TABLE)} == {"F32"}


@pytest.mark.parametrize("target", ["m.gguf", "directory"])
@pytest.mark.parametrize(
    ("name", "write"), [("llama32-tied", write_meta), ("mistral-no-window", write_mistral)]
)
def test_metas_layout_is_converted(
    name: str,
    write: Callable[[TinyModel, Path], Path],
    target: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model(name)
    expected = read_expected(name)
    converted(write(case, tmp_path / "meta"), tmp_path / target, architectures)
    with engine(case, tmp_path / target, architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) <= BOUND


@pytest.mark.parametrize(
    "kind", [Type.Q8_0, Type.Q5_1, Type.Q5_0, Type.Q4_1, Type.Q4_0], ids=lambda k: k.name
)
@pytest.mark.parametrize("name", ["llama3-gqa-tied", "phi3-window", "gemma2"])
def test_quantised_tensors_are_those_of_ggml_and_answer_as_their_numbers(
    name: str,
    kind: Type,
    tmp_path: Path,
    checkpoint: Checkpoint,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case, path = tiny_model(name), tmp_path / "m.gguf"
    converted(checkpoint(case), path, architectures, quant=kind.name.lower())
    plain = {t.name: t for t in gguf.GGUFReader(write_gguf(case, tmp_path / "plain.gguf")).tensors}
    for tensor in gguf.GGUFReader(path).tensors:
        is_matrix = len(tensor.shape) > 1
        wanted = kind if tensor.name.startswith("blk.") else Type.Q8_0
        assert tensor.tensor_type == (wanted if is_matrix else Type.F32), tensor.name
        expected = gguf.quants.quantize(plain[tensor.name].data, wanted) if is_matrix else None
        assert np.array_equal(tensor.data, plain[tensor.name].data if expected is None else expected)
    converted(path, tmp_path / "numbers", architectures, quant="f32")
    rows = []
    for model, device in ((path, "cpu"), (tmp_path / "numbers", "reference")):
        with engine(case, model, architectures, open_device, device=device) as core:
            rows.append(expected_rows(core, case, read_expected(name)))
    assert nmse(rows[0], rows[1]) <= BOUND_OF_BLOCKS


@pytest.mark.parametrize("kind", [Type.Q8_0, Type.Q4_1], ids=lambda k: k.name)
@pytest.mark.parametrize(
    "name",
    [
        "qwen3-moe",
        "granite-moe",
        "glm4-moe",
        "qwen3-next",
        "qwen3-5-moe",
        "nemotron-h-moe",
        "deepseek-v3",
        "kimi-linear",
        "gemma4-moe",
        "deepseek-v4-some-experts",
    ],
)
def test_experts_and_layers_with_states_are_quantised_as_by_ggml(
    name: str,
    kind: Type,
    tmp_path: Path,
    checkpoint: Checkpoint,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case, path = tiny_model(name), tmp_path / "m.gguf"
    converted(checkpoint(case), path, architectures, quant=kind.name.lower())
    plain = gguf.GGUFReader(write_gguf(case, tmp_path / "plain.gguf")).tensors
    weights = [tensor for tensor in plain if tensor.tensor_type != Type.I32]
    expected = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in weights}
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.tensor_type == Type.I32:
            continue
        numbers = expected[tensor.name]
        wanted = stored_type(case, tensor.name, numbers, kind if "blk." in tensor.name else Type.Q8_0)
        if wanted != Type.F32 and numbers.shape[-1] % 32:
            wanted = Type.F16
        assert tensor.tensor_type == wanted, tensor.name
        assert np.array_equal(tensor.data, gguf.quants.quantize(numbers, wanted)), tensor.name
    converted(path, tmp_path / "numbers", architectures, quant="f32")
    rows = []
    for model in (path, tmp_path / "numbers"):
        with engine(case, model, architectures, open_device, device="reference", activations="f32") as core:
            rows.append(expected_rows(core, case, read_expected(name)))
    assert nmse(rows[0], rows[1]) <= BOUND


@pytest.mark.parametrize(
    "name",
    ["deepseek-v3", "gemma4-per-layer", "kimi-linear", "rwkv7", "falcon-h1", "deepseek-v4-some-experts"],
)
def test_a_gguf_file_is_rewritten_as_a_gguf_file(
    name: str, tmp_path: Path, checkpoint: Checkpoint, architectures: Architectures
) -> None:
    first, second = (tmp_path / folder / f"{name}.gguf" for folder in ("first", "second"))
    for path in (first, second):
        path.parent.mkdir()
    converted(checkpoint(tiny_model(name)), first, architectures)
    converted(first, second, architectures)
    assert different(stored_tensors(first), stored_tensors(second)) == []
    assert contents(gguf.GGUFReader(first)) == contents(gguf.GGUFReader(second))


def test_a_matrix_of_both_ends_becomes_two_if_their_multipliers_differ(
    tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case = tiny_model("falcon-h1")
    tied = replace(case, name="tied", config={**case.config, "tie_word_embeddings": True})
    source = write_checkpoint(tied, tmp_path / "tied")
    converted(source, tmp_path / "m.gguf", architectures)
    assert {"token_embd.weight", "output.weight"} <= stored_tensors(tmp_path / "m.gguf").keys()
    rows = []
    for model in (source, tmp_path / "m.gguf"):
        with engine(tied, model, architectures, open_device, device="reference") as core:
            rows.append(core.forward(np.array(case.prompt, np.int32)))
    assert nmse(rows[1], rows[0]) <= BOUND


@pytest.mark.parametrize("target", ["m.gguf", "directory"])
def test_blocks_of_older_files_with_latent_attention_become_their_numbers(
    target: str, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case = tiny_model("deepseek-v3")
    changes = older_keys(case.config)
    source = write_gguf(case, tmp_path / "old.gguf", Type.Q8_0, changes=changes, edit=join_latents)
    converted(source, tmp_path / target, architectures, quant="f32")
    rows = []
    for model in (source, tmp_path / target):
        with engine(case, model, architectures, open_device, device="reference", activations="f32") as core:
            rows.append(expected_rows(core, case, read_expected(case.name)))
    assert nmse(rows[1], rows[0]) <= 1e-6  # transposed blocks are loaded as f16


@pytest.mark.parametrize("quant", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("is_gguf", [False, True], ids=["directory", "gguf"])
def test_mxfp4_becomes_the_numbers_that_it_means(
    quant: str,
    is_gguf: bool,  # noqa: FBT001 - two forms of one model
    tmp_path: Path,
    checkpoint: Checkpoint,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model("gpt-oss")
    source = write_gguf(case, tmp_path / "m.gguf") if is_gguf else checkpoint(case)
    converted(source, tmp_path / "numbers", architectures, quant=quant)
    stored = stored_tensors(tmp_path / "numbers")
    assert {dtype for dtype, _ in stored.values()} == {quant.upper()}
    assert stored["model.layers.0.mlp.experts.gate_up_proj"][1].shape == (6, 64, 192)
    assert "quantization_config" not in json.loads((tmp_path / "numbers" / "config.json").read_text())
    if quant == "f16":
        return  # numbers of bf16 are rounded
    expected = read_expected(case.name)
    with engine(case, tmp_path / "numbers", architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) <= BOUND


@pytest.mark.parametrize("name", ["llama-f16", "qwen3-tied", "llama3-gqa-tied", "phi3-longrope-long"])
def test_all_parts_of_a_split_file_are_converted(
    name: str, tmp_path: Path, checkpoint: Checkpoint, architectures: Architectures
) -> None:
    case = tiny_model(name)
    first = write_gguf(case, tmp_path / "m.gguf", num_parts=3)
    converted(first, tmp_path / "back", architectures)
    assert different(stored_tensors(checkpoint(case)), stored_tensors(tmp_path / "back")) == []
    converted(first, tmp_path / "whole.gguf", architectures)
    assert different(stored_tensors(first), stored_tensors(tmp_path / "whole.gguf")) == []


def test_a_model_that_sees_becomes_a_gguf_file_of_its_text_part_alone(
    tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case = tiny_model("phi4-mini-short")
    source = write_phi4_multimodal(case, tmp_path / "source")
    report = converted(source, tmp_path / "m.gguf", architectures)
    assert any("are left out" in notice for notice in report.notices)
    expected = read_expected(case.name)
    with engine(case, tmp_path / "m.gguf", architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) <= BOUND
    with pytest.raises(UnsupportedModelError, match="also processes images or audio"):
        converted(source, tmp_path / "directory", architectures)


def test_a_hybrid_with_experts_that_sees_becomes_a_gguf_file_of_its_text_part(
    tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case, name = tiny_model("qwen3-5-moe"), "Qwen3_5MoeForConditionalGeneration"
    source = write_vision_language(
        case, tmp_path / "source", architecture=name, below=as_written_now, tower=["model.visual"]
    )
    converted(source, tmp_path / "m.gguf", architectures)
    assert (
        different(stored_tensors(tmp_path / "m.gguf"), stored_tensors(write_gguf(case, tmp_path / "t.gguf")))
        == []
    )
    with engine(case, tmp_path / "m.gguf", architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) <= BOUND
    with pytest.raises(UnsupportedModelError, match="also processes images or audio"):
        converted(source, tmp_path / "directory", architectures)
