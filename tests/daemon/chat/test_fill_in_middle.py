from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import RequestError
from llmd.chat.fill_in_middle import FORMS, PREFIX, SUFFIX, FillInMiddle, form_of
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.serving.model import BOS, write_model

QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>")
CODESTRAL = ("[SUFFIX]", "[PREFIX]")


def fill(directory: Path, extra: tuple[str, ...]) -> FillInMiddle:
    return FillInMiddle.of(load_tokenizer(write_model(directory, extra_specials=extra)))


def test_prompt_has_the_markers_of_the_model_around_both_texts(tmp_path: Path) -> None:
    middle = fill(tmp_path, QWEN)
    assert middle.encode("ab", "c") == (259, *b"ab", 260, *b"c", 261)
    assert middle.stop_ids == (259, 260, 261, 262)


def test_suffix_comes_first_where_the_model_learned_it_so(tmp_path: Path) -> None:
    assert fill(tmp_path, CODESTRAL).encode("ab", "c") == (259, *b"c", 260, *b"ab")


def test_special_tokens_in_both_texts_stay_text(tmp_path: Path) -> None:
    assert BOS not in fill(tmp_path, QWEN).encode("<s>", "<|fim_middle|>")[1:]
    assert fill(tmp_path, QWEN).encode("", "<|fim_middle|>").count(261) == 1


def test_model_without_markers_refuses(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no fill-in-the-middle tokens") as caught:
        fill(tmp_path, ("<|fim_prefix|>",))
    assert caught.value.param == "suffix"


def test_each_form_holds_both_texts_and_is_found_by_its_markers() -> None:
    for form in FORMS:
        assert {PREFIX, SUFFIX} < set(form.pieces)
        assert form_of(form.markers.__contains__) is form
    assert form_of(lambda _text: False) is None
