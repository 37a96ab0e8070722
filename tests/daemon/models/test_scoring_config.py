from __future__ import annotations

from typing import Any

import pytest

from llmd.api.embedding import Embedding
from llmd.api.errors import UnsupportedModelError
from llmd.models.scoring_config import read_scoring, scores


def test_a_class_with_a_classifier_scores() -> None:
    assert scores({"architectures": ["XLMRobertaForSequenceClassification"]})
    assert not scores({"architectures": ["XLMRobertaModel"]})
    assert not scores({"architectures": None})


@pytest.mark.parametrize(
    ("config", "function"),
    [
        ({}, "sigmoid"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, "sigmoid"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, "identity"),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, "identity"),
        ({"sentence_transformers": {"version": "5.0"}}, "sigmoid"),
        ({"sentence_transformers": None, "sbert_ce_default_activation_function": None}, "sigmoid"),
    ],
)
def test_the_function_is_the_one_that_sentence_transformers_names(
    config: dict[str, Any], function: Any
) -> None:
    assert read_scoring(config, "config.json") == Embedding(("cls",), normalizes=False, score=function)


def test_another_function_is_refused_by_name() -> None:
    config = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Softplus"}}
    with pytest.raises(UnsupportedModelError, match="Softplus; supported are Sigmoid, Identity"):
        read_scoring(config, "config.json")
