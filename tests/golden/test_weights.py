from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.golden.checkpoint import read_safetensors, write_checkpoint
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.routing import ROUTING_CASES
from tests.golden.tensors import draw_tensors, tensor_shapes
from tests.golden.weights import draw, draw_tokens, from_bf16, random_words, to_bf16


def test_streams_are_those_the_expectations_were_made_with() -> None:
    words = random_words(1, "model.norm.weight", 3)
    assert words.tolist() == [15854232727910740152, 15557763919275183187, 6494173349329378689]
    assert draw(1, "model.norm.weight", (3,), 1.0, 0.2).view(np.uint32).tolist() == [
        1068337420,
        1062807805,
        1066312035,
    ]
    assert draw_tokens(4, 5, 131) == [9, 62, 98, 92, 122]


def test_each_tensor_has_a_stream_of_its_own() -> None:
    first = draw(1, "model.layers.0.mlp.up_proj.weight", (1000,), 0.0, 1.0)
    other_name = draw(1, "model.layers.1.mlp.up_proj.weight", (1000,), 0.0, 1.0)
    other_seed = draw(2, "model.layers.0.mlp.up_proj.weight", (1000,), 0.0, 1.0)
    assert abs(np.corrcoef(first, other_name)[0, 1]) < 0.1
    assert abs(np.corrcoef(first, other_seed)[0, 1]) < 0.1


def test_elements_have_the_mean_and_deviation_asked_for() -> None:
    values = draw(3, "x", (100, 1000), 2.0, 0.5)
    assert abs(values.mean() - 2.0) < 0.01
    assert abs(values.std() - 0.5) < 0.005


def test_a_longer_tensor_begins_with_the_elements_of_a_shorter_one() -> None:
    np.testing.assert_array_equal(draw(1, "x", (8,), 0.0, 1.0), draw(1, "x", (4, 5), 0.0, 1.0).ravel()[:8])


def test_bfloat16_rounds_to_nearest_with_ties_to_even() -> None:
    ulp = 2.0**-7
    values = np.array([1.0, 1 + 0.4 * ulp, 1 + 0.5 * ulp, 1 + 1.5 * ulp, -(1 + 0.6 * ulp)], np.float32)
    assert from_bf16(to_bf16(values)).tolist() == [1.0, 1.0, 1.0, 1 + 2 * ulp, -(1 + ulp)]


def test_case_names_are_unique() -> None:
    every = (*CASES, *ROUTING_CASES, *FP8_CASES, *NVFP4_CASES)
    assert len({case.name for case in every}) == len(every)


def test_a_sharded_checkpoint_holds_every_tensor_once(tmp_path: Path) -> None:
    case = tiny_model("llama-bf16-sharded")
    write_checkpoint(case, tmp_path)
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    stored = [read_safetensors(shard)[0] for shard in shards]
    assert len(shards) == case.num_shards
    assert sum(len(tensors) for tensors in stored) == len(tensor_shapes(case.config))
    for name, values in draw_tensors(case):
        (found,) = (tensors[name] for tensors in stored if name in tensors)
        np.testing.assert_array_equal(found, values)
