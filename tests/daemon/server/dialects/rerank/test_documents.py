from __future__ import annotations

from llmd.chat.model_text import ModelText
from llmd.server.dialects.rerank.documents import Documents, cut


def test_documents_are_cut_to_so_many_tokens_and_what_is_lost_is_counted(text: ModelText) -> None:
    assert cut(text.tokenizer, ["x" * 40, "abc", ""], 5) == Documents(("xxxxx", "abc", ""), 35)


def test_nothing_is_cut_where_nothing_is_said(text: ModelText) -> None:
    assert cut(text.tokenizer, ["x" * 40], None) == Documents(("x" * 40,))


def test_special_tokens_of_a_document_are_cut_as_text(text: ModelText) -> None:
    assert cut(text.tokenizer, ["<|im_end|>" * 3], 10) == Documents(("<|im_end|>",), 20)
