"""Single texts and pairs are encoded as transformers does for BERT-like models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.tokenizers.pairs import PairFrame, TokenPair, join
from llmd.chat.tokenizers.tokenizer import Tokenizer

Load = Callable[[str], Tokenizer]
GOLDEN = Path(__file__).parents[3] / "golden/tokenizers"
KINDS = ("encoder_bert", "encoder_vocab", "encoder_xlm_roberta")
BERT = PairFrame((101,), (102,), (103,), separators_of_first=1)


def cases(kind: str, *, in_pairs: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / kind / "pairs.json").read_text())
    return [case for case in found if (case["second"] is not None) == in_pairs]


def types(pair: TokenPair) -> list[int]:
    count = len(pair.ids)
    return [0] * count if pair.second_at is None else [int(i >= pair.second_at) for i in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_its_marks_before_and_after_it(kind: str, load: Load) -> None:
    tokenizer = load(kind)
    asked = cases(kind, in_pairs=False)
    assert [tokenizer.encode_whole(case["first"]) for case in asked] == [case["ids"] for case in asked]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_joined_typed_and_cut_as_in_transformers(kind: str, load: Load) -> None:
    tokenizer = load(kind)
    for case in cases(kind, in_pairs=True):
        pair = tokenizer.encode_pair(case["first"], case["second"], case["max_len"])
        assert (pair.ids, types(pair)) == (case["ids"], case["types"]), case


def test_a_pair_stands_in_its_frame() -> None:
    assert join(BERT, [1, 2], [3], None) == TokenPair([101, 1, 2, 102, 3, 103], second_at=4)
    assert join(PairFrame((), (), ()), [1, 2], [3], None) == TokenPair([1, 2, 3], second_at=None)


@pytest.mark.parametrize(
    ("first", "second", "room", "kept"),
    [
        (5, 3, 8, (5, 3)),
        (5, 3, 7, (4, 3)),
        (3, 5, 7, (3, 4)),
        (5, 3, 5, (3, 2)),
        (3, 5, 5, (2, 3)),
        (4, 4, 5, (2, 3)),
        (0, 9, 4, (0, 4)),
        (9, 9, 0, (0, 0)),
    ],
)
def test_the_longer_text_gives_way_first(first: int, second: int, room: int, kept: tuple[int, int]) -> None:
    pair = join(BERT, [1] * first, [2] * second, room + BERT.num_tokens)
    assert (pair.ids.count(1), pair.ids.count(2)) == kept


def test_a_frame_that_is_longer_than_the_limit_stays_whole() -> None:
    assert join(BERT, [1], [2], 1).ids == [101, 102, 103]


def test_a_tokenizer_without_a_frame_joins_nothing(load: Load) -> None:
    with pytest.raises(RequestError, match="does not encode pairs of texts"):
        load("sentencepiece_llama").encode_pair("a", "b")
