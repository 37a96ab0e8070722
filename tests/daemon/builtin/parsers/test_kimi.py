from __future__ import annotations

import pytest

from llmd.builtin.parsers.kimi import load
from tests.daemon.builtin.parsers.readings import joined, read

CALLS = (
    "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "<|x|>", "days": [1, {"a": "}"}]}<|tool_call_end|><|tool_call_begin|>functions.now:1'
    "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
)
SPACED = """\
I look. <|tool_calls_section_begin|> <|tool_call_begin|>
functions.get_weather:11 <|tool_call_argument_begin|> {"city": "<|x|>", "days": [1, {"a": "}"}]} <|tool_call_end|>
<|tool_call_begin|> functions.now:12 <|tool_call_argument_begin|> {} <|tool_call_end|> <|tool_calls_section_end|>
"""
SINGULAR = CALLS.replace("calls_section", "call_section").replace("functions.", "")


@pytest.mark.parametrize("answer", [CALLS, SPACED, SINGULAR], ids=["published", "spaced", "singular"])
def test_calls_are_read(answer: str) -> None:
    weather = ("get_weather", '{"city": "<|x|>", "days": [1, {"a": "}"}]}')
    assert read(load(), answer) == ["I look.", weather, ("now", "{}")]


def test_arguments_stream_as_they_come() -> None:
    reader = load().open([])
    assert joined(reader.feed(CALLS[: CALLS.index("days")])) == [
        "I look.",
        ("get_weather", '{"city": "<|x|>", "'),
    ]


def test_text_may_follow_and_the_end_of_the_section_may_be_missing() -> None:
    now = CALLS[CALLS.index("<|tool_calls_section_begin|>") :].replace("get_weather", "files.list:all")
    assert read(load(), f"{now} Done.")[1:] == [("now", "{}"), " Done."]
    assert read(load(), now.removesuffix("<|tool_calls_section_end|>"))[0][0] == "files.list:all"


@pytest.mark.parametrize("head", ["", "functions.now", ":0", "two words:0"])
def test_what_names_no_call_is_text(head: str) -> None:
    text = f"<|tool_calls_section_begin|><|tool_call_begin|>{head}<|tool_call_argument_begin|>{{}}"
    assert read(load(), text) == [text]
