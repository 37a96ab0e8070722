"""Map tensor names of transformers, which plans use, to those of GGUF files."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from llmd.api.ops import Norm, Op
from llmd.api.plan import ModelPlan
from llmd.models.gguf.deepseek4_names import DEEPSEEK4, deepseek4_name
from llmd.models.stored_names import renamed

ENDS: Mapping[str, str] = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.final_layernorm": "output_norm",
    "model.embed_tokens_per_layer": "per_layer_token_embd",
    "model.per_layer_model_projection": "per_layer_model_proj",
    "model.per_layer_projection_norm": "per_layer_proj_norm",
    "lm_head": "output",
    "backbone.embeddings": "token_embd",
    "backbone.norm_f": "output_norm",
    "model.embeddings": "token_embd",
    "model.layers.0.pre_norm": "token_embd_norm",
    "bert.embeddings.word_embeddings": "token_embd",
    "bert.embeddings.position_embeddings": "position_embd",
    "bert.embeddings.token_type_embeddings": "token_types",
    "bert.embeddings.LayerNorm": "token_embd_norm",
    "bert.pooler.dense": "cls",
    "classifier": "cls.output",
}
RWKV7_LAYER: Mapping[str, str] = {
    "attn_norm": "attn_norm",
    "ffn_norm": "attn_norm_2",
    "attn.r_proj": "time_mix_receptance",
    "attn.k_proj": "time_mix_key",
    "attn.v_proj": "time_mix_value",
    "attn.o_proj": "time_mix_output",
    "attn.g_norm": "time_mix_ln",
    **{
        f"attn.{value}_lora.lora.{index}": f"time_mix_{value}{number}"
        for value in "wvag"
        for index, number in ((0, 1), (2, 2))
    },
    "ffn.key": "channel_mix_key",
    "ffn.value": "channel_mix_value",
}
"""Modules of RWKV-7, as fla names them."""
LAYER: Mapping[str, str] = {
    **RWKV7_LAYER,
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    **{f"feed_forward.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")},
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "mlp.experts.*.gate_proj": "ffn_gate_exps",
    "mlp.experts.*.up_proj": "ffn_up_exps",
    "mlp.experts.*.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    **{
        f"mlp.{module}.{name}_proj": f"ffn_{name}_shexp"
        for module in ("shared_expert", "shared_experts")
        for name in ("gate", "up", "down")
    },
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b",
    "self_attn.k_b_proj": "attn_k_b",
    "self_attn.v_b_proj": "attn_v_b",
    "self_attn.indexer.wq_b": "indexer.attn_q_b",
    "self_attn.indexer.wk": "indexer.attn_k",
    "self_attn.indexer.k_norm": "indexer.k_norm",
    "self_attn.indexer.weights_proj": "indexer.proj",
    **{f"self_attn.{value}_conv1d": f"ssm_conv1d_{value}" for value in "qkv"},
    **{f"self_attn.{name}_proj": f"ssm_{name}" for name in ("f_a", "f_b", "g_a", "g_b")},
    "self_attn.b_proj": "ssm_beta",
    "self_attn.o_norm": "ssm_norm",
    "linear_attn.in_proj_qkvz": "ssm_in",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "norm": "attn_norm",
    **{
        f"{module}.{name}": stored
        for module in ("mamba", "mixer")
        for name, stored in {
            "in_proj": "ssm_in",
            "conv1d": "ssm_conv1d",
            "norm": "ssm_norm",
            "out_proj": "ssm_out",
        }.items()
    },
    "mixer.q_proj": "attn_q",
    "mixer.k_proj": "attn_k",
    "mixer.v_proj": "attn_v",
    "mixer.o_proj": "attn_output",
    "mixer.up_proj": "ffn_up",
    "mixer.down_proj": "ffn_down",
    "mixer.gate": "ffn_gate_inp",
    "mixer.experts.*.up_proj": "ffn_up_exps",
    "mixer.experts.*.down_proj": "ffn_down_exps",
    "mixer.shared_experts.up_proj": "ffn_up_shexp",
    "mixer.shared_experts.down_proj": "ffn_down_shexp",
    "mixer.fc1_latent_proj": "ffn_latent_down",
    "mixer.fc2_latent_proj": "ffn_latent_up",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "router.proj": "ffn_gate_inp",
    "experts.*.gate_proj": "ffn_gate_exps",
    "experts.*.up_proj": "ffn_up_exps",
    "experts.*.down_proj": "ffn_down_exps",
    "block_sparse_moe.gate": "ffn_gate_inp",
    **{
        f"block_sparse_moe.shared_experts.{name}_proj": f"ffn_{name}_shexp" for name in ("gate", "up", "down")
    },
    "block_sparse_moe.experts.*.w1": "ffn_gate_exps",
    "block_sparse_moe.experts.*.w2": "ffn_down_exps",
    "block_sparse_moe.experts.*.w3": "ffn_up_exps",
}
AFTER_ATTENTION = "post_attention_layernorm"
NORM_AFTER = ("gemma2", "gemma3", "olmo2", "gemma4", "glm4moe", "gpt-oss", "qwen3next", "qwen35", "qwen35moe")
"""Architectures that name this norm after attention, which it follows in the first four; others name it
after the feed-forward network, which it precedes."""
BARE: Mapping[str, str] = {
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "self_attn.sinks": "attn_sinks.weight",
    "block_sparse_moe.gate.e_score_correction_bias": "exp_probs_b.bias",
    "self_attn.A_log": "ssm_a",
    "self_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    **{
        f"{module}.{name}": stored
        for module in ("mamba", "mixer")
        for name, stored in {"A_log": "ssm_a", "dt_bias": "ssm_dt.bias", "D": "ssm_d"}.items()
    },
    "mixer.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "layer_scalar": "layer_output_scale.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    **{f"attn.{value}_lora.lora.2.bias": f"time_mix_{value}0.weight" for value in "wva"},
    **{f"attn.{name}": f"time_mix_{name}.weight" for name in ("k_k", "k_a", "r_k")},
    "attn.x_x": "time_mix_lerp_fused.weight",
    "ffn.x_k": "channel_mix_lerp_k.weight",
    "pre_ff_layernorm.weight": "ffn_norm",
}
"""Tensors of a layer that transformers names without ``weight`` or ``bias``, biases that files call
weights, and a norm whose name in files has no ``weight``."""

IN_LAYER = re.compile(
    r"(?:model\.layers|backbone\.layers|bert\.encoder\.layer)\.(?P<layer>\d+)\.(?P<module>.+)"
)


def stored_name(name: str, architecture: str) -> str:
    """Return the name of a plan's tensor in a GGUF file of ``architecture``; unknown names stay."""
    if architecture == DEEPSEEK4:
        return deepseek4_name(name)
    whole = IN_LAYER.fullmatch(name)
    if whole is not None and whole["module"] in BARE:
        return f"blk.{whole['layer']}.{BARE[whole['module']]}"
    module, _, kind = name.rpartition(".")
    if module in ENDS:
        return f"{ENDS[module]}.{kind}"
    found = IN_LAYER.fullmatch(module)
    if found is None:
        return name
    if found["module"] == AFTER_ATTENTION:
        stored = "post_attention_norm" if architecture in NORM_AFTER else "ffn_norm"
    else:
        stored = LAYER.get(found["module"], found["module"])
    return f"blk.{found['layer']}.{stored}.{kind}"


def as_stored(plan: ModelPlan, architecture: str) -> ModelPlan:
    """Return the plan with the tensor names of a GGUF file and without offsets of norm weights.

    The offset that Gemma adds to norm weights is already included in the file.
    """
    parts = (msgspec.structs.replace(part, ops=tuple(map(_whole, part.ops))) for part in plan.parts)
    whole = msgspec.structs.replace(plan, parts=tuple(parts))
    return renamed(whole, lambda name: stored_name(name, architecture))


def _whole(op: Op) -> Op:
    return msgspec.structs.replace(op, offset=0.0) if isinstance(op, Norm) and op.offset else op
