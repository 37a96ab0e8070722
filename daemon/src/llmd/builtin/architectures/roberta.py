"""RoBERTa and XLM-RoBERTa: BGE-M3, multilingual E5, and cross-encoders such as BGE's re-rankers."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.classifier import is_classifier, score_part
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.encoder import encoder_plan, read_encoder


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Plan a BERT whose positions start after the index of the padding token.

    Source: Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach"; Conneau et al. 2020,
    "Unsupervised Cross-lingual Representation Learning at Scale".
    """
    fields = ConfigFields(config)
    padding = fields.count("pad_token_id", 1)
    encoder = read_encoder(fields, architecture="roberta", prefix="roberta.", unused_positions=padding + 1)
    if not is_classifier(config):
        return encoder_plan(encoder, context_len)
    score = score_part(fields, "classifier.dense", "classifier.out_proj", encoder.shape.hidden_size)
    return encoder_plan(encoder, context_len, score)
