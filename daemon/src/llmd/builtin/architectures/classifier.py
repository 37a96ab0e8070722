"""Scoring models: what a class ``…ForSequenceClassification`` with one label adds to its encoder."""

from __future__ import annotations

from llmd.api import HIDDEN, Activate, Part
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.encoder import linear

SUFFIX = "ForSequenceClassification"


def is_classifier(config: Config) -> bool:
    """Whether the configuration names a class with a classifier."""
    stated = config.get("architectures")
    return isinstance(stated, list) and any(str(name).endswith(SUFFIX) for name in stated[:1])


def score_part(fields: ConfigFields, dense: str, out: str, hidden: int) -> Part:
    """Return the scoring part: a dense layer with tanh, then the label; the first row's output is a text's
    score.

    Source: Nogueira & Cho 2019, "Passage Re-ranking with BERT".

    Raises:
        UnsupportedModelError: the model does not have exactly one label.
    """
    num_labels = len(fields.inside("id2label")) if "id2label" in fields else fields.size("num_labels", 2)
    if num_labels != 1:
        fields.refuse_unsupported("id2label", num_labels, "1 label, the score of a pair of texts")
    ops = (
        linear(HIDDEN, {"x": dense}, hidden, hidden),
        Activate("x", "x", "tanh"),
        linear("x", {HIDDEN: out}, 1, hidden),
    )
    return Part("score", "score", None, ops)
