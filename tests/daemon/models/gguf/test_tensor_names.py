from __future__ import annotations

import pytest

from llmd.api.ops import Norm
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.gguf.tensor_names import as_stored, stored_name
from tests.golden.gguf_layout import architecture_of, gguf_tensors
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.encoders import bert
from tests.golden.models.tiny import TinyModel

ROPE = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
NAMES = (
    "llama-mqa-biases",
    "qwen2-tied",
    "qwen3-tied",
    "phi4",
    "gemma2",
    "gemma3",
    "gemma4",
    "granite",
    "olmo2",
)
MIXTURES = ("mixtral", "qwen2-moe", "qwen3-moe", "olmoe", "glm4-moe", "gpt-oss", "qwen3-5", "qwen3-5-moe")
LATENTS = ("deepseek-v2-lite", "deepseek-v3", "deepseek-v4-published")
FAMILIES = [case for case in CASES if case.name in (*NAMES, *MIXTURES, *LATENTS)]
ENCODER = TinyModel("bert", bert())


@pytest.mark.parametrize("case", [*FAMILIES, ENCODER], ids=lambda case: case.name)
def test_every_tensor_has_the_name_that_the_gguf_package_gives_it(case: TinyModel) -> None:
    name = case.config["architectures"][0]
    config = {**case.config, "fused_experts": False, "split_kv_b": True}
    plan = next(one for one in llmd_architectures() if name in one.names).plan(config, None)
    stored = as_stored(plan, architecture_of(case.config))
    assert {ref.name for ref in stored.tensor_refs()} == gguf_tensors(case).keys() - set(ROPE)


def test_nothing_is_added_to_gemmas_norms_a_second_time() -> None:
    config = tiny_model("gemma2").config
    plan = next(one for one in llmd_architectures() if "gemma2" in one.names).plan(config, None)
    norms = [op for part in plan.parts for op in part.ops if isinstance(op, Norm)]
    stored = [op for part in as_stored(plan, "gemma2").parts for op in part.ops if isinstance(op, Norm)]
    assert {op.offset for op in norms} == {1.0}
    assert {op.offset for op in stored} == {0.0}


def test_a_name_that_no_file_knows_stays() -> None:
    assert stored_name("score.weight", "llama") == "score.weight"
    assert stored_name("model.layers.3.mixer.weight", "llama") == "blk.3.mixer.weight"
