"""Phi-4-multimodal: Phi-4-mini with vision and speech encoders, and adapters that only they use."""

from __future__ import annotations

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures import phi3

SENSES = LeftOut("vision and speech", ("model.embed_tokens_extend.", ".lora_A.", ".lora_B."))
"""The encoders and the adapters of the layers, which text does not use."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Plan the text model. Source: Abouelenin et al. 2025, "Phi-4-Mini Technical Report"."""
    return msgspec.structs.replace(phi3.plan(config, context_len), left_out=(SENSES,))
