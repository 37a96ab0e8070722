from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmd.chat.rerankers.qwen3 import INSTRUCTION, unmarked_reranker
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.golden.checkpoint import write_checkpoint
from tests.serving.model import byte_tokenizer, write_model
from tests.serving.reranker import CASE, SPECIALS

# The prefix and suffix that the model card puts around a query and a document.
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def test_asks_in_the_words_of_the_model_card(tmp_path: Path) -> None:
    write_checkpoint(CASE, tmp_path)
    tokenizer_json: Any = byte_tokenizer(SPECIALS)
    tokenizer_json["model"]["vocab"] |= {"ye": 256, "yes": 257, "no": 258}
    tokenizer_json["model"]["merges"] = ["y e", "ye s", "n o"]
    tokenizer_json["added_tokens"] = [
        {**token, "id": token["id"] + 3} for token in tokenizer_json["added_tokens"]
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json))
    reranker = unmarked_reranker(load_tokenizer(tmp_path))
    assert reranker is not None
    assert reranker.answer_ids == (257, 258)
    with TemplateRenderer() as renderer:
        asked = reranker.render(renderer, "a {{ query }}", "two\nlines\n")
        other = reranker.render(renderer, "q", "d", "Find laws")
    pair = f"<Instruct>: {INSTRUCTION}\n<Query>: a {{{{ query }}}}\n<Document>: two\nlines\n"
    assert asked.text == PREFIX + pair + SUFFIX
    assert other.text == PREFIX + "<Instruct>: Find laws\n<Query>: q\n<Document>: d" + SUFFIX


def test_a_vocabulary_without_the_answers_does_not_rank(tmp_path: Path) -> None:
    assert unmarked_reranker(load_tokenizer(write_model(tmp_path))) is None
