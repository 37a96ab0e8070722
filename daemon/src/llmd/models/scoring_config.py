"""What the configuration of a cross-encoder says about its scores."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api.embedding import Embedding, ScoreFunction
from llmd.api.errors import UnsupportedModelError
from llmd.api.plugins import Config
from llmd.models.class_names import named_class

SUFFIX = "ForSequenceClassification"

# By the last part of the class's name in torch.
FUNCTIONS: Mapping[str, ScoreFunction] = {"Sigmoid": "sigmoid", "Identity": "identity"}


def scores(config: Config) -> bool:
    """Whether a model scores pairs of texts, told without a plan."""
    return named_class(config).endswith(SUFFIX)


def read_scoring(config: Config, path: str) -> Embedding:
    """How the score of a pair of texts is read: that of its first row, through the function that sentence-transformers names.

    Without a name it is the logistic function, as there.

    Raises:
        UnsupportedModelError: the function is another.
    """
    name = _function_name(config)
    if name is None:
        return Embedding(("cls",), normalizes=False, score="sigmoid")
    function = FUNCTIONS.get(name.rpartition(".")[2])
    if function is None:
        raise UnsupportedModelError(
            f"{path}: scores are made by {name[:80]}; known here: {', '.join(FUNCTIONS)}",
            hint="take a cross-encoder that is scored in one of these ways",
        )
    return Embedding(("cls",), normalizes=False, score=function)


def _function_name(config: Config) -> str | None:
    """The class of the function: where newer versions of sentence-transformers write it, or where older ones did."""
    newer = (config.get("sentence_transformers") or {}).get("activation_fn")
    return newer or config.get("sbert_ce_default_activation_function") or None
