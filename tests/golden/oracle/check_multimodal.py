"""Asks transformers' models that see or hear for text alone;
compares what they say with the goldens of their text models.

    python -m tests.golden.oracle.check_multimodal

Exit status 1 where they differ by more than the arithmetic of another machine. Nothing is written.
"""

from __future__ import annotations

import sys
from functools import partial

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedModel,
)

from tests.golden.expected import nmse, read_expected
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.multimodal import as_idefics_names_it, as_published, as_written_now
from tests.golden.oracle.make_oracle import SAME_NMSE
from tests.golden.oracle.transformers_model import fix_rope, logits
from tests.golden.tensors import as_float32, draw_tensors

TOWER = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip
EARS = {
    "hidden_size": 16, "intermediate_size": 16, "num_blocks": 1, "num_attention_heads": 2,
    "ext_pw_out_channel": 16, "depthwise_seperable_out_channel": 16, "nemo_conv_channels": 16,
}  # fmt: skip

AUDIO = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}

SPELLINGS = (str, as_published, as_written_now, as_idefics_names_it)


def phi4_multimodal(case: TinyModel) -> PreTrainedModel:
    fields = {key: value for key, value in case.config.items() if key not in ("model_type", "architectures")}
    config = AutoConfig.for_model(
        "phi4_multimodal", vision_config={**TOWER, "crop_size": 28}, audio_config=EARS, **fields
    )
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)


def with_tower(model_type: str, tower_type: str, case: TinyModel) -> PreTrainedModel:
    tower = {**TOWER, "model_type": tower_type}
    return with_parts(model_type, case, vision_config=tower, mm_tokens_per_image=1)


def gemma4(case: TinyModel) -> PreTrainedModel:
    tower = {**TOWER, "num_key_value_heads": 2, "head_dim": 8}
    return with_parts("gemma4", case, vision_config=tower, audio_config=AUDIO)


def gemma4_unified(case: TinyModel) -> PreTrainedModel:
    return with_parts("gemma4_unified", case, vision_config=TOWER, audio_config={})


def qwen3_5(model_type: str, case: TinyModel) -> PreTrainedModel:
    tower = {
        "hidden_size": 16, "intermediate_size": 16, "depth": 1, "num_heads": 2,
        "out_hidden_size": case.config["hidden_size"],
    }  # fmt: skip
    return with_parts(model_type, case, vision_config=tower)


def with_parts(model_type: str, case: TinyModel, **parts: object) -> PreTrainedModel:
    """A model with the text model of the case and other parts. Gemma 4 asks for a token that fills gaps."""
    text, tied = {**case.config, "pad_token_id": 0}, case.config["tie_word_embeddings"]
    config = AutoConfig.for_model(model_type, text_config=text, tie_word_embeddings=tied, **parts)
    return AutoModelForImageTextToText.from_config(config, attn_implementation="eager", dtype=torch.float32)


def fill(model: PreTrainedModel, case: TinyModel) -> None:
    """Give the text part the weights of the case;
    each must find its place, and no other may be of the layers.
    """
    names = model.state_dict().keys()
    below = next(rename for rename in SPELLINGS if rename("model.norm.weight") in names)
    weights = {below(name): torch.from_numpy(as_float32(stored)) for name, stored in draw_tensors(case)}
    if case.config["tie_word_embeddings"]:
        weights["lm_head.weight"] = next(iter(weights.values()))
    found = model.load_state_dict(weights, strict=False)
    senses = (
        "embed_tokens_extend", "vision_tower", "vision_model", "multi_modal_projector", "connector",
        "image_newline", "visual", "audio_tower", "embed_vision", "embed_audio",
    )  # fmt: skip
    assert not found.unexpected_keys, found.unexpected_keys
    assert all(any(sense in name for sense in senses) for name in found.missing_keys), found.missing_keys
    fix_rope(model, case.context_len)


def main() -> int:
    torch.set_num_threads(1)
    good = True
    for name, build in (
        ("phi4-mini-short", phi4_multimodal),
        ("phi4-mini-long", phi4_multimodal),
        ("gemma3", partial(with_tower, "gemma3", "siglip_vision_model")),
        ("gemma3-linear-rope", partial(with_tower, "gemma3", "siglip_vision_model")),
        ("mistral-no-window", partial(with_tower, "mistral3", "pixtral")),
        ("llama-f16", partial(with_tower, "llava", "clip_vision_model")),
        ("mistral-window", partial(with_tower, "llava_next", "clip_vision_model")),
        ("qwen2-untied", partial(with_tower, "internvl", "internvl_vision")),
        ("qwen3-tied", partial(with_tower, "internvl", "internvl_vision")),
        ("llama32-tied", partial(with_tower, "idefics3", "idefics3_vision")),
        ("smollm", partial(with_tower, "smolvlm", "smolvlm_vision")),
        ("gemma4-per-layer", gemma4),
        ("gemma4-moe", gemma4),
        ("gemma4", gemma4_unified),
        ("qwen3-5", partial(qwen3_5, "qwen3_5")),
        ("qwen3-5-moe", partial(qwen3_5, "qwen3_5_moe")),
    ):
        case, expected = tiny_model(name), read_expected(name)
        model = build(case)
        fill(model, case)
        ids = [*case.prompt, *expected.tokens.tolist()]
        error = nmse(logits(model.eval(), ids)[expected.positions], expected.logits)
        print(f"{type(model).__name__:38} {name:20} NMSE {error:.1e}")
        good &= error <= SAME_NMSE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
