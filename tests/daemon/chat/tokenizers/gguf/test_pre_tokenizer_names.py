"""Pre-tokenizers of ``tokenizer.json`` get their names in GGUF files, or None."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.tokenizers.gguf.pre_tokenizer_names import name_of, pre_tokenizer_name, steps_of
from llmd.chat.tokenizers.gguf.pre_tokenizers import CUTS, PreTokenizer
from llmd.chat.tokenizers.word_patterns import LLAMA3, QWEN2

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
GPT2_BYTES = {**BYTES, "use_regex": True}
NFC = {"type": "NFC"}


def split(regex: str, /, **changes: Any) -> dict[str, Any]:
    step = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return step | changes


def form(
    *steps: dict[str, Any], normalizer: dict[str, Any] | None = None, ignore_merges: bool = False
) -> dict[str, Any]:
    cut = steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": list(steps)}
    return {"pre_tokenizer": cut, "normalizer": normalizer, "model": {"ignore_merges": ignore_merges}}


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        (form(GPT2_BYTES), "gpt-2"),
        (form(split(LLAMA3), BYTES, ignore_merges=True), "llama-bpe"),
        (form(split(LLAMA3), BYTES), "dbrx"),
        (form(split(QWEN2), BYTES, normalizer=NFC), "qwen2"),
        (form({"type": "Digits", "individual_digits": True}, GPT2_BYTES), "starcoder"),
        (form(GPT2_BYTES, normalizer={"type": "Sequence", "normalizers": [NFC]}), "mpt"),
    ],
)
def test_a_cut_has_the_name_of_the_models_that_make_it(stated: dict[str, Any], name: str) -> None:
    assert pre_tokenizer_name(stated) == name


@pytest.mark.parametrize(
    "stated",
    [
        form({**GPT2_BYTES, "add_prefix_space": True}),
        form({"type": "Metaspace"}),
        form(split("x+"), BYTES),
        form(split(QWEN2, behavior="Removed"), BYTES, normalizer=NFC),
        form(split(QWEN2, invert=True), BYTES, normalizer=NFC),
        form(split(QWEN2, pattern={"String": " "}), BYTES, normalizer=NFC),
        form(split(QWEN2), BYTES, normalizer={"type": "NFKC"}),
        form(split(QWEN2)),
        {**form(GPT2_BYTES), "pre_tokenizer": None},
    ],
)
def test_another_way_to_cut_has_no_name(stated: dict[str, Any]) -> None:
    assert pre_tokenizer_name(stated) is None


def test_every_cut_of_bytes_is_found_again_by_what_it_does() -> None:
    for name, cut in CUTS.items():
        found = name_of(PreTokenizer(cut.patterns, cut.whole_words, cut.composes, cut.spaced))
        assert found is not None, name
        assert CUTS[found].patterns == cut.patterns


def test_sequences_may_lie_in_sequences() -> None:
    nested = {"type": "Sequence", "normalizers": [NFC, {"type": "Sequence", "normalizers": [{"type": "X"}]}]}
    assert [step["type"] for step in steps_of(nested, "normalizers")] == ["NFC", "X"]
    assert list(steps_of(None, "normalizers")) == []
