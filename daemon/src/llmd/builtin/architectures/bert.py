"""BERT: the first generation of BGE, E5, GTE and MiniLM, and cross-encoders based on BERT."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.classifier import is_classifier, score_part
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.encoder import encoder_plan, read_encoder


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"."""
    fields = ConfigFields(config)
    encoder = read_encoder(fields, architecture="bert", prefix="bert.")
    if not is_classifier(config):
        return encoder_plan(encoder, context_len)
    score = score_part(fields, "bert.pooler.dense", "classifier", encoder.shape.hidden_size)
    return encoder_plan(encoder, context_len, score)
