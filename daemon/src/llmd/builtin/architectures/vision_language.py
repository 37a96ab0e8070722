"""Models that see: a text model of a family that is known here, whose configuration is ``text_config``, below a vision tower."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures import gemma3, mistral
from llmd.builtin.architectures.config_fields import ConfigFields

VISION = LeftOut("vision", ("vision_tower.", "multi_modal_projector."))

TextPlan = Callable[[Config, int | None], ModelPlan]

SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
GEMMA3 = dict(zip(SIZES, (262208, 2304, 9216, 26, 8, 4, 131072), strict=True))
MISTRAL = dict(zip(SIZES, (32000, 4096, 14336, 32, 32, 8, 131072), strict=True))
"""What an absent size means: transformers leaves out of ``text_config`` what equals its default."""

TEXT_MODELS: Mapping[str, tuple[TextPlan, Mapping[str, int]]] = {
    "gemma3_text": (gemma3.plan, GEMMA3),
    "mistral": (mistral.plan, MISTRAL),
}
DEFAULT_EPS = 1e-6


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """The model of text alone. Sources: Gemma Team 2025, "Gemma 3 Technical Report"; Mistral AI 2025, Mistral Small 3.1."""
    plan_text, defaults = ConfigFields(config).inside("text_config").choice("model_type", TEXT_MODELS)
    text = plan_text({**defaults, "rms_norm_eps": DEFAULT_EPS, **config["text_config"]}, context_len)
    return msgspec.structs.replace(text, left_out=(VISION,))
