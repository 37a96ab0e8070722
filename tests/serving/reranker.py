"""A tiny random model that ranks documents:
Qwen3 with the files that sentence-transformers writes for such a model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.qwen import qwen3
from tests.golden.models.tiny import TinyModel
from tests.serving.model import byte_tokenizer

SPECIALS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
RERANKER = "ranker"
CONTEXT_LEN = 1024
TRUE_ID, FALSE_ID = b"yn"
"""What the bytes of "y" and "n" are in a vocabulary of bytes."""

INSTRUCTION = "Find passages that answer the question"
TEMPLATE = """\
{%- macro of(role) -%}{{ messages | selectattr("role", "eq", role) | map(attribute="content") | first }}{%- endmacro -%}
<|im_start|>system
Answer y or n.<|im_end|>
<|im_start|>user
{{ of("system") }}: {{ of("query") }}
{{ of("document") }}<|im_end|>
{% if add_generation_prompt %}<|im_start|>assistant
{{ mark }}{% endif %}
"""
CASE = TinyModel(
    "reranker-qwen3",
    qwen3(
        vocab_size=256 + len(SPECIALS),
        max_position_embeddings=CONTEXT_LEN,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=257,
    ),
    seed=4,
    context_len=CONTEXT_LEN,
)
QUERY = "Which planet is red?"
DOCUMENTS = (
    "Venus is as large as Earth.",
    "Mars is called the red planet: its dust is rust.",
    "",
    "Der Mars ist rot. 火星は赤い。 🪐",
    "Saturn has rings. " * 20,
)
SHORT_DOCUMENTS = DOCUMENTS[:4]


def write_reranker(directory: Path, **score: Any) -> Path:
    """Write the model; returns its directory. ``score`` are fields of the module that scores."""
    write_checkpoint(CASE, directory)
    ids = {"true_token_id": TRUE_ID, "false_token_id": FALSE_ID}
    files: dict[str, Any] = {
        "tokenizer.json": byte_tokenizer(SPECIALS),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|im_end|>",
            "added_tokens_decoder": {256 + place: {"content": text} for place, text in enumerate(SPECIALS)},
        },
        "modules.json": [
            {
                "idx": 0,
                "name": "0",
                "path": "",
                "type": "sentence_transformers.base.modules.transformer.Transformer",
            },
            {
                "idx": 1,
                "name": "1",
                "path": "1_LogitScore",
                "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore",
            },
        ],
        "sentence_bert_config.json": {
            "transformer_task": "text-generation",
            "modality_config": {
                "text": {"method": "forward", "method_output_name": "logits"},
                "message": {"method": "forward", "method_output_name": "logits", "format": "flat"},
            },
            "module_output_name": "causal_logits",
            "processing_kwargs": {"chat_template": {"add_generation_prompt": True, "mark": "<think>"}},
        },
        "config_sentence_transformers.json": {
            "model_type": "CrossEncoder",
            "prompts": {"planets": INSTRUCTION},
            "default_prompt_name": "planets",
            "activation_fn": "torch.nn.modules.activation.Sigmoid",
        },
        "1_LogitScore/config.json": ids | score,
    }
    for name, content in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(json.dumps(content))
    (directory / "chat_template.jinja").write_text(TEMPLATE)
    return directory
