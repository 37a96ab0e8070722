"""Draft heads are recognised, named and counted, and change no answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.engine.loading import OpenDevice
from llmd.models.open_model import open_model
from llmd.models.structure import NotLoaded, structure_of
from tests.golden.converted import converted, different, stored_tensors
from tests.golden.draft_heads import NUM_BYTES, draft_names, write_with_draft_head
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import read_expected
from tests.golden.gguf_layout import Tensors, architecture_of, num_layers, write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.models.fp8 import WITH_FP4_EXPERTS
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

BOUND = 1e-9
FAMILIES = [
    *("glm4-moe", "qwen3-next", "qwen3-5", "qwen3-5-moe"),
    *("deepseek-v3", "glm4-moe-lite", "deepseek-v32", "glm-moe-dsa-shared"),
    *("nemotron-h-moe", "nemotron-h-latent", "deepseek-v4-published"),
]
GGUF_HEAD = ("nextn.eh_proj.weight", "nextn.enorm.weight", "attn_norm.weight", "attn_q.weight")
"""Tensors of the block that has the head in a GGUF file, after the last layer."""
each_family = pytest.mark.parametrize("case", [tiny_model(name) for name in FAMILIES], ids=FAMILIES)


def write_gguf_with_draft_head(case: TinyModel, path: Path) -> Path:
    layers, name = num_layers(case.config), architecture_of(case.config)

    def add_head(tensors: Tensors) -> None:
        tensors |= {f"blk.{layers}.{end}": np.ones((4, 4), np.float32) for end in GGUF_HEAD}

    changes = {"block_count": layers + 1, "nextn_predict_layers": 1, **of_each_block(case)}
    changes = {f"{name}.{key}": value for key, value in changes.items()}
    return write_gguf(case, path, changes=changes, edit=add_head)


def of_each_block(case: TinyModel) -> dict[str, list[int]]:
    """Keys that have a value for each block of the file, also for that of the head, which has both halves."""
    if "layers_block_type" not in case.config:
        return {}
    halves = {
        "attention.head_count_kv": "num_key_value_heads",
        "feed_forward_length": "moe_intermediate_size",
    }
    found = {}
    for (key, field), kind in zip(halves.items(), ("full_attention", "moe"), strict=True):
        value = case.config[field]
        found[key] = [*(value if one == kind else 0 for one in case.config["layers_block_type"]), value]
    return found


def check(case: TinyModel, path: Path, num_tensors: int, size: int, architectures: Architectures) -> None:
    model = open_model(path, architectures)
    with model.checkpoint:
        assert model.notices == (
            f"{num_tensors} tensors for a draft head are left out: llmd does not draft with such a head yet",
        )
        expected = NotLoaded("a draft head", is_draft=True, tensors=num_tensors, size_bytes=size)
        assert structure_of(model.plan, model.checkpoint).not_loaded == (expected,)
        assert model.plan.num_layers == num_layers(case.config)


@each_family
def test_the_head_of_a_directory_is_counted_and_left_out(
    case: TinyModel, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    path = write_with_draft_head(case, tmp_path / "m")
    num_tensors = len(draft_names(case))
    check(case, path, num_tensors, num_tensors * NUM_BYTES, architectures)
    with engine(case, path, architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) <= BOUND


def test_a_head_in_fp8_with_fp4_experts_is_left_out(
    tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    """A layer of DeepSeek-V4 again: its codes and scales are counted apart, as the files have them."""
    case = WITH_FP4_EXPERTS
    layer = {name: stored for name, stored in draw_tensors(case) if name.startswith("layers.1.")}
    head = {name.replace("layers.1.", "mtp.0."): stored for name, stored in layer.items()}
    path = write_with_draft_head(case, tmp_path / "m", head)
    check(case, path, len(head), sum(stored.nbytes for stored in head.values()), architectures)
    with engine(case, path, architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) <= BOUND


@each_family
def test_the_head_of_a_gguf_file_is_counted_and_left_out(
    case: TinyModel, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    path = write_gguf_with_draft_head(case, tmp_path / "m.gguf")
    size = 16 * len(GGUF_HEAD) * (4 if case.dtype == "f32" else 2)
    check(case, path, len(GGUF_HEAD), size, architectures)
    with engine(case, path, architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) <= BOUND


@each_family
def test_a_converted_model_has_no_head_and_that_is_said(
    case: TinyModel, tmp_path: Path, architectures: Architectures
) -> None:
    report = converted(write_with_draft_head(case, tmp_path / "m"), tmp_path / "m.gguf", architectures)
    assert any("tensors for a draft head are left out" in notice for notice in report.notices)
    bare = stored_tensors(write_gguf(case, tmp_path / "bare.gguf"))
    assert different(stored_tensors(tmp_path / "m.gguf"), bare) == []
