from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.families import FAMILIES, MIXTURES, family_of
from llmd.models.gguf.fields import GgufFields, head_dim
from llmd.models.gguf.gguf_file import GgufFile
from tests.golden.gguf_latents import older_keys
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def fields(tmp_path: Path, name: str, changes: Mapping[str, Any]) -> GgufFields:
    with GgufFile.open(write_gguf(tiny_model(name), tmp_path / "m.gguf", changes=changes)) as file:
        return GgufFields(file.metadata, file.tensors)


def read(tmp_path: Path, name: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    found = fields(tmp_path, name, changes or {})
    return FAMILIES[found.architecture].config(found)


def family_name(tmp_path: Path, name: str, changes: Mapping[str, Any] | None = None) -> str:
    family = family_of(fields(tmp_path, name, changes or {}))
    assert family is not None
    return family.name


def test_a_llama_with_experts_is_a_mixtral(tmp_path: Path) -> None:
    assert family_of(fields(tmp_path, "llama2-mha", {})) is FAMILIES["llama"]
    mixtral = fields(tmp_path, "mixtral", {})
    family = family_of(mixtral)
    assert family is MIXTURES["llama"]
    assert family.config(mixtral) == {
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    }


def test_widths_of_experts_that_no_file_states_follow_from_others(tmp_path: Path) -> None:
    assert read(tmp_path, "qwen2-moe")["moe_intermediate_size"] == 48
    unstated = {
        "qwen2moe.expert_feed_forward_length": None,
        "qwen2moe.expert_shared_feed_forward_length": None,
    }
    found = read(tmp_path, "qwen2-moe", unstated)
    assert found["moe_intermediate_size"] == 96 // 2
    assert found["shared_expert_intermediate_size"] == 96


def test_the_routers_of_glm_are_described_by_keys(tmp_path: Path) -> None:
    found = read(tmp_path, "glm4-moe-groups", {"glm4moe.nextn_predict_layers": 1})
    assert (found["n_group"], found["topk_group"], found["norm_topk_prob"]) == (4, 2, False)
    assert found["num_hidden_layers"] == 2, "the last block is a draft head"
    with pytest.raises(UnsupportedModelError, match=r"glm4moe.expert_gating_func is 1"):
        read(tmp_path, "glm4-moe", {"glm4moe.expert_gating_func": 1})


def test_latent_attention_has_the_sizes_of_heads_in_newer_and_in_older_files(tmp_path: Path) -> None:
    case = tiny_model("deepseek-v3")
    newer = read(tmp_path, "deepseek-v3")
    older = read(tmp_path, "deepseek-v3", older_keys(case.config))
    sizes = ("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    for found in (newer, older):
        assert [found[name] for name in sizes] == [case.config[name] for name in sizes]
    assert newer["split_kv_b"] is True
    assert read(tmp_path, "deepseek-v2-lite")["q_lora_rank"] is None
    assert read(tmp_path, "deepseek-v2-groups")["attention_bias"] is True


def test_groups_and_routers_tell_the_families_of_deepseek_apart(tmp_path: Path) -> None:
    assert read(tmp_path, "deepseek-v2-lite")["topk_method"] == "greedy"
    assert read(tmp_path, "deepseek-v2-groups")["topk_method"] == "group_limited_greedy"
    names = {name: family_name(tmp_path, name) for name in ("deepseek-v2-lite", "deepseek-v3")}
    assert names == {"deepseek-v2-lite": "DeepseekV2", "deepseek-v3": "DeepseekV3"}
    without = family_name(tmp_path, "deepseek-v3", {"deepseek2.expert_gating_func": None})
    assert without == "DeepseekV2", "older files of DeepSeek-V2 do not state it"


def test_gpt_oss_has_a_window_and_separate_matrices(tmp_path: Path) -> None:
    found = read(tmp_path, "gpt-oss")
    assert found == {
        "attention_bias": True,
        "mlp_bias": False,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "intermediate_size": 96,
        "fused_experts": False,
        "sliding_window": 12,
    }


def test_layers_with_states_are_told_by_their_tensors(tmp_path: Path) -> None:
    found = read(tmp_path, "qwen3-5-tied")
    assert found["layer_types"] == list(tiny_model("qwen3-5-tied").config["layer_types"])
    assert (found["linear_num_value_heads"], found["linear_value_head_dim"]) == (6, 16)
    assert (found["tiled_heads"], found["negative_rates"]) == (True, True)
    mixture = read(tmp_path, "qwen3-next")
    assert (mixture["fused_qkvz"], mixture["moe_intermediate_size"]) == (False, 32)
    assert mixture["shared_expert_intermediate_size"] == 40
    assert read(tmp_path, "qwen3-5-moe")["fused_experts"] is False


def test_layers_with_one_half_are_told_by_their_tensors(tmp_path: Path) -> None:
    dense, mixture = (read(tmp_path, name) for name in ("nemotron-h", "nemotron-h-moe"))
    assert (dense["hybrid_override_pattern"], mixture["hybrid_override_pattern"]) == ("M-*M-", "ME*EM")
    assert (mixture["n_routed_experts"], mixture["moe_shared_expert_intermediate_size"]) == (8, 40)
    assert (mixture["routed_scaling_factor"], mixture["norm_topk_prob"]) == (1.5, True)


def test_granite_hybrids_say_whether_attention_has_positions(tmp_path: Path) -> None:
    dense, mixture = (read(tmp_path, name) for name in ("granite-hybrid", "granite-hybrid-moe"))
    assert (dense["position_embedding_type"], mixture["position_embedding_type"]) == ("nope", "rope")
    assert (dense["shared_intermediate_size"], mixture["shared_intermediate_size"]) == (88, 36)
    assert dense["layer_types"] == ["mamba", "attention", "mamba"]
    assert (mixture["mamba_conv_bias"], mixture["mamba_proj_bias"]) == (False, True)


def test_biases_are_told_by_their_tensors(tmp_path: Path) -> None:
    assert read(tmp_path, "llama-mqa-biases") == {"attention_bias": True, "mlp_bias": True}
    assert read(tmp_path, "llama-f16") == {"attention_bias": False, "mlp_bias": False}


def test_a_window_of_nothing_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "phi3-window") == {"sliding_window": 13}
    assert read(tmp_path, "phi4") == {"sliding_window": None}


def test_gemma_has_the_windows_and_scales_that_no_file_states(tmp_path: Path) -> None:
    unstated = {"gemma2.attention.scale": None, "gemma2.final_logit_softcapping": None}
    found = read(tmp_path, "gemma2", unstated)
    assert found["query_pre_attn_scalar"] == pytest.approx(32)  # the width of a head
    assert found["layer_types"] == ["sliding_attention", "full_attention", "sliding_attention"]
    assert found["final_logit_softcapping"] == 30
    unstated = {"gemma3.attention.scale": None, "gemma3.attention.sliding_window_pattern": None}
    found = read(tmp_path, "gemma3", unstated)
    assert found["layer_types"] == ["sliding_attention"] * 3
    assert (found["rope_theta"], found["rope_local_base_freq"]) == (1e6, 1e4)


@pytest.mark.parametrize(("family", "layers"), [("gemma2", 46), ("gemma3", 62)])
def test_the_largest_gemma_scales_by_its_hidden_size(tmp_path: Path, family: str, layers: int) -> None:
    changes = {f"{family}.block_count": layers, f"{family}.attention.scale": None}
    assert read(tmp_path, family, changes)["query_pre_attn_scalar"] == pytest.approx(16)


def test_layers_with_a_window_may_be_listed(tmp_path: Path) -> None:
    changes = {"gemma3.attention.sliding_window_pattern": [True, False, True]}
    assert read(tmp_path, "gemma3", changes)["layer_types"] == [
        "sliding_attention",
        "full_attention",
        "sliding_attention",
    ]


def test_granites_scales_are_those_of_its_configuration(tmp_path: Path) -> None:
    found = read(tmp_path, "granite")
    for name in ("attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling"):
        assert found[name] == tiny_model("granite").config[name]
    unstated = read(tmp_path, "granite", {"granite.attention.scale": None})
    assert unstated["attention_multiplier"] == 0.25


def test_a_later_olmo_is_not_taken_for_olmo_2(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"olmo2.attention.sliding_window is 4096"):
        read(tmp_path, "olmo2", {"olmo2.attention.sliding_window": 4096})


def test_heads_have_a_width_of_their_own_or_share_the_hidden_size(tmp_path: Path) -> None:
    assert head_dim(fields(tmp_path, "gemma2", {})) == 32
    unstated = {"gemma2.attention.key_length": None, "gemma2.attention.value_length": None}
    assert head_dim(fields(tmp_path, "gemma2", unstated)) == 16
