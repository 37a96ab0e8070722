"""Names and shapes of the tensors of models with the state space of Mamba-2, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

BACKBONES = ("nemotron_h", "mamba2")
"""The model types whose layers have one half."""


FALCON = "falcon_h1"
OF_GRANITE = ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv")
SIZES = {
    "granitemoehybrid": OF_GRANITE,
    FALCON: OF_GRANITE,
    "nemotron_h": ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel"),
    "mamba2": ("num_heads", "head_dim", "n_groups", "state_size", "conv_kernel"),
}
"""Fields with the heads, the elements of a head, the groups, the elements of a state, and the taps."""


def space_sizes(config: Mapping[str, Any]) -> tuple[int, ...]:
    """The values of these fields; none if the model has no state spaces."""
    return tuple(config[name] for name in SIZES.get(config["model_type"], ()))


def keeps_space(config: Mapping[str, Any], layer: int) -> bool:
    """Whether a layer of a model with both halves has a state space."""
    states = ("mamba", "linear_attention")
    return config["model_type"] == "granitemoehybrid" and config["layer_types"][layer] in states


def granite_space_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the first half of a layer of Granite 4, in file order."""
    biased = (config["mamba_conv_bias"], config["mamba_proj_bias"])
    return _space("mamba", config["hidden_size"], space_sizes(config), biased)


def falcon_space_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the state space of a layer of Falcon-H1, in file order."""
    for name, shape in granite_space_shapes(config):
        if config["mamba_rms_norm"] or name != "mamba.norm.weight":
            yield name, shape


def granite_dense_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the network of a Granite 4 without experts, in file order."""
    hidden, inner = config["hidden_size"], config["shared_intermediate_size"]
    yield "shared_mlp.input_linear.weight", (2 * inner, hidden)
    yield "shared_mlp.output_linear.weight", (hidden, inner)


def backbone_shapes(config: Mapping[str, Any]) -> dict[str, Shape]:
    """Name and shape of every tensor of a model whose layers have one half."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes: dict[str, Shape] = {"backbone.embeddings.weight": (vocab, hidden)}
    for layer, kind in enumerate(layer_kinds(config)):
        shapes[f"backbone.layers.{layer}.norm.weight"] = (hidden,)
        for name, shape in _HALVES[kind](config):
            shapes[f"backbone.layers.{layer}.{name}"] = shape
    shapes["backbone.norm_f.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def layer_kinds(config: Mapping[str, Any]) -> list[str]:
    """What each layer has."""
    listed: list[str] = config.get("layers_block_type") or ["linear_attention"] * config["num_hidden_layers"]
    return listed


def _half_space(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    biased = (config["use_conv_bias"], config["use_bias"])
    return _space("mixer", config["hidden_size"], space_sizes(config), biased)


def _space(
    module: str, hidden: int, sizes: tuple[int, ...], biased: tuple[bool, bool]
) -> Iterator[tuple[str, Shape]]:
    """The tensors for heads, elements of a head, groups, elements of a state, and taps."""
    heads, head_dim, groups, state, taps = sizes
    inner = heads * head_dim
    mixed = inner + 2 * groups * state
    yield f"{module}.in_proj.weight", (inner + mixed + heads, hidden)
    yield f"{module}.conv1d.weight", (mixed, 1, taps)
    if biased[0]:
        yield f"{module}.conv1d.bias", (mixed,)
    for name in ("dt_bias", "A_log", "D"):
        yield f"{module}.{name}", (heads,)
    yield f"{module}.norm.weight", (inner,)
    yield f"{module}.out_proj.weight", (hidden, inner)
    if biased[1]:
        yield f"{module}.in_proj.bias", (inner + mixed + heads,)
        yield f"{module}.out_proj.bias", (hidden,)


def _half_attention(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    hidden, dim = config["hidden_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    for name, width in (("q_proj", q), ("k_proj", kv), ("v_proj", kv)):
        yield f"mixer.{name}.weight", (width, hidden)
    yield "mixer.o_proj.weight", (hidden, q)


def _half_network(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    return _network("mixer", config["hidden_size"], config["intermediate_size"])


def _half_experts(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    hidden, count = config["hidden_size"], config["n_routed_experts"]
    latent = config.get("moe_latent_size")
    yield "mixer.gate.weight", (count, hidden)
    yield "mixer.gate.e_score_correction_bias", (count,)
    for expert in range(count):
        module = f"mixer.experts.{expert}"
        yield from _network(module, latent or hidden, config["moe_intermediate_size"])
    yield from _network("mixer.shared_experts", hidden, config["moe_shared_expert_intermediate_size"])
    if latent:
        yield "mixer.fc1_latent_proj.weight", (latent, hidden)
        yield "mixer.fc2_latent_proj.weight", (hidden, latent)


def _network(module: str, hidden: int, inner: int) -> Iterator[tuple[str, Shape]]:
    yield f"{module}.up_proj.weight", (inner, hidden)
    yield f"{module}.down_proj.weight", (hidden, inner)


_HALVES = {
    "linear_attention": _half_space,
    "full_attention": _half_attention,
    "mlp": _half_network,
    "moe": _half_experts,
}
