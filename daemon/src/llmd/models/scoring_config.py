"""Read from a cross-encoder's configuration how scores are computed."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api.embedding import Embedding, ScoreFunction
from llmd.api.errors import UnsupportedModelError
from llmd.api.plugins import Config
from llmd.models.class_names import named_class

SUFFIX = "ForSequenceClassification"

# By the last part of the torch class name.
FUNCTIONS: Mapping[str, ScoreFunction] = {"Sigmoid": "sigmoid", "Identity": "identity"}


def scores(config: Config) -> bool:
    """Whether a model scores pairs of texts, decided without a plan."""
    return named_class(config).endswith(SUFFIX)


def read_scoring(config: Config, path: str) -> Embedding:
    """Return how a pair of texts is scored: the first row's value, through the configured function.

    Without a name it is the logistic function, as in sentence-transformers.

    Raises:
        UnsupportedModelError: the function is not supported.
    """
    name = _function_name(config)
    if name is None:
        return Embedding(("cls",), normalizes=False, score="sigmoid")
    function = FUNCTIONS.get(name.rpartition(".")[2])
    if function is None:
        raise UnsupportedModelError(
            f"{path}: the score function is {name[:80]}; supported are {', '.join(FUNCTIONS)}",
            hint="use a cross-encoder with one of these functions",
        )
    return Embedding(("cls",), normalizes=False, score=function)


def _function_name(config: Config) -> str | None:
    """Return the class name of the function, from the field of newer or of older sentence-transformers."""
    newer = (config.get("sentence_transformers") or {}).get("activation_fn")
    return newer or config.get("sbert_ce_default_activation_function") or None
