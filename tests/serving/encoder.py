"""Tiny encoders to serve: weights of the golden models, tokenizers of BERT's and XLM-RoBERTa's kinds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.tiny import TinyModel

TOKENIZERS = Path(__file__).parents[1] / "golden" / "tokenizers"
KINDS = {"bert": "encoder_bert", "xlm-roberta": "encoder_xlm_roberta"}
"""The tokenizer of each ``model_type``."""


def write_encoder(case: TinyModel, directory: Path) -> Path:
    """Write an encoder without files that say how it pools. Returns its directory."""
    write_checkpoint(case, directory)
    for path in (TOKENIZERS / KINDS[case.config["model_type"]]).glob("*token*.json"):
        shutil.copy(path, directory)
    return directory


def tokenized(case: TinyModel) -> list[dict[str, Any]]:
    """Texts and pairs of texts as transformers encodes them for a model of this kind."""
    path = TOKENIZERS / KINDS[case.config["model_type"]] / "pairs.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found
