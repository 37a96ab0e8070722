from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.errors import RequestError
from llmd.chat.templates.literals import LiteralSwap, RenderedPrompt, Segment

SPECIALS = frozenset({"<|end|>", "<s>", "</think>"})


def round_trip(text: str) -> RenderedPrompt:
    swap = LiteralSwap(SPECIALS, "", text)
    return swap.reveal(swap.hide(text))


def test_special_text_becomes_a_literal_of_its_own() -> None:
    segments = round_trip("a<|end|>b<s><|end|>").segments
    assert segments == (Segment("a"), Segment("<|end|>", True), Segment("b"), Segment("<s><|end|>", True))


def test_placeholder_has_the_length_and_survives_what_templates_do() -> None:
    text = " <|end|>x "
    swap = LiteralSwap(SPECIALS, "", text)
    hidden = swap.hide(text)
    assert len(hidden) == len(text)
    assert swap.reveal(hidden.strip().upper()).text == "<|end|>X"
    assert swap.reveal(hidden[:4]).segments == (Segment(" "), Segment("<|e", True))


def test_text_that_leaves_no_placeholders_is_refused() -> None:
    private = "".join(map(chr, range(0xF0003, 0x10FFFE)))
    assert LiteralSwap({"<s>"}, private, "<s>").hide("<s>") == "\U000f0000\U000f0001\U000f0002"
    with pytest.raises(RequestError, match="all private-use characters that could replace them"):
        LiteralSwap({"<s>"}, "", f"<s>\U000f0000{private}")


def test_escaped_placeholder_is_revealed() -> None:
    text = '"<|end|>"'
    swap = LiteralSwap(SPECIALS, "", text)
    escaped = swap.hide(text).encode("ascii", "backslashreplace").decode()
    assert "<|end|>" not in escaped
    as_json = '"' + "".join(f"\\u{unit:04x}" for unit in _utf16(swap.hide("<|end|>"))) + '"'
    assert swap.reveal(as_json).segments == (Segment('"'), Segment("<|end|>", True), Segment('"'))


def _utf16(text: str) -> list[int]:
    units = text.encode("utf-16-be")
    return [int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2)]


def test_characters_that_a_request_uses_are_not_placeholders() -> None:
    text = "\U000f0000<s>\U000f0001"
    swap = LiteralSwap(SPECIALS, "{{ '\U000f0002' }}", text)
    assert swap.reveal(swap.hide(text)).segments == (
        Segment("\U000f0000"),
        Segment("<s>", True),
        Segment("\U000f0001"),
    )
    assert swap.reveal("\U000f0002").segments == (Segment("\U000f0002"),)


def test_strings_are_hidden_wherever_they_stand() -> None:
    inputs = {"tools": [{"<s>": ["<s>", 7, None]}], "flag": True}
    swap = LiteralSwap(SPECIALS, "", inputs)
    assert "<s>" not in str(swap.hide(inputs))
    assert swap.hide(inputs)["flag"] is True


def test_templates_still_see_reasoning_tags_of_the_assistant() -> None:
    inputs = [{"role": "assistant", "content": "no</think><s>"}, {"role": "user", "content": "no</think>"}]
    assistant, user = LiteralSwap(SPECIALS, "", inputs).hide(inputs)
    assert "</think>" in assistant["content"]
    assert "<s>" not in assistant["content"]
    assert "</think>" not in user["content"]


def test_text_without_special_texts_is_left_alone() -> None:
    assert round_trip("plain") == RenderedPrompt((Segment("plain"),))
    assert round_trip("") == RenderedPrompt(())


@given(
    st.lists(st.sampled_from(["<", "s", ">", "<s>", "<|end|>", "|", "\U000f0000", "\U000f0001", "é"])).map(
        "".join
    )
)
def test_any_text_comes_back(text: str) -> None:
    assert round_trip(text).text == text
