"""Models that embed: their texts, and the files that say how hidden states are pooled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.golden.models.encoders import bert, roberta
from tests.golden.models.qwen import qwen3
from tests.golden.models.tiny import TinyModel
from tests.golden.weights import draw_tokens

LENGTHS = (1, 2, 16, 45, 100)
FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weighted_mean": "pooling_mode_weightedmean_tokens",
    "last": "pooling_mode_lasttoken",
}
"""Each pooling, and what sentence-transformers calls it."""

ODD: dict[str, Any] = {
    "hidden_size": 60,
    "intermediate_size": 101,
    "num_attention_heads": 6,
    "vocab_size": 149,
}
ENCODERS = (
    TinyModel("bert-embedding", bert()),
    TinyModel("bert-odd", bert(**ODD, hidden_act="relu"), dtype="bf16"),
    TinyModel("xlm-roberta-embedding", roberta(hidden_act="gelu_new"), dtype="f16"),
)
CASES = (TinyModel("qwen3-embedding", {**qwen3(), "architectures": ["Qwen3Model"]}, seed=4), *ENCODERS)

SCORERS = (
    TinyModel("bert-scores", bert("BertForSequenceClassification"), seed=2),
    TinyModel("xlm-roberta-scores", roberta("XLMRobertaForSequenceClassification"), dtype="bf16", seed=3),
)
"""Models that score pairs of texts."""


def texts(case: TinyModel) -> list[tuple[int, ...]]:
    """Token ids of the texts of a case;
    none is the padding token, around which RoBERTa would count positions.
    """
    vocab, padding = case.config["vocab_size"], case.config["pad_token_id"]
    drawn = (draw_tokens(case.seed + length, length, vocab) for length in LENGTHS)
    return [tuple(token + 1 if token == padding else token for token in text) for text in drawn]


def second_at(case: TinyModel, length: int) -> int | None:
    """Return where the second text of a pair of ``length`` tokens begins;
    None if the model has one type for both.
    """
    return 2 * length // 3 if case.config["type_vocab_size"] > 1 else None


def write_pooling(
    directory: Path, poolings: Sequence[str], *, normalizes: bool = True, width: int = 64
) -> None:
    """Write the files that sentence-transformers adds to a model."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling"} | ({"2_Normalize": "Normalize"} if normalizes else {})
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (directory / "modules.json").write_text(json.dumps(modules))
    flags = {flag: pooling in poolings for pooling, flag in FLAGS.items()}
    (directory / "1_Pooling").mkdir(exist_ok=True)
    (directory / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": width, **flags, "include_prompt": True})
    )
