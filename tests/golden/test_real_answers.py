"""What a published template writes for an answer with calls, the parsers of its family read back.

The answers are those that an assistant's message becomes in the template of its family, as models saw them in
training; no model generated them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct

from llmd.api.parsing import Tool
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import AnswerFormats, ParserChoice, choose_formats
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.reasoning import ReasoningSplitter
from tests.golden import samples
from tests.golden.samples import TEMPLATES
from tests.golden.templates import plain_jinja

NOW = datetime(2026, 3, 2, 15, 4, 5, tzinfo=UTC)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
PARSERS = ParserChoice({parser.name: parser for parser in llmd_parsers()})
THOUGHT = "Is it <b>warm</b> in 東京?\n\nI ask [twice]."
TEXT = "I ask for {both} – 天気は?"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_weather", {"city": '東京 "駅"\n1', "days": 3, "at": [{"x": [35.7, -100.0, None]}, {}, "}]", True]}),
    ("get_weather", {"city": "Zürich, {a}", "exact": False, "at": {"b": {"deep": [[], [False]]}}}),
    ("now", {}),
]
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "exact": {"type": "boolean"},
        "at": {"type": ["array", "object"]},
    },
    "required": ["city"],
}
TOOLS = [Tool("get_weather", PARAMETERS), Tool("now", {"type": "object", "properties": {}})]
OPEN = "<think>\n"


class Writing(Struct, frozen=True):
    """What a template writes of an answer with reasoning, text and calls."""

    begin: str
    """What it writes before the answer, up to where the model begins."""
    end: str
    """What it writes behind it, where the engine ends an answer."""
    reasons: bool = True
    """Whether it writes the reasoning of an answer that calls tools."""
    has_text: bool = True
    """Whether it writes the text beside calls, before them."""
    calls: int = len(CALLS)
    """How many calls it writes."""
    has_tools: bool = True
    """Whether it can write the tools of a request."""
    switches: Mapping[str, Any] = {}

    def message(self) -> dict[str, Any]:
        """The answer as a message."""
        calls = [
            {"id": f"call0000{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(CALLS[: self.calls])
        ]
        thought = {"reasoning_content": THOUGHT, "thinking": THOUGHT} if self.reasons else {}
        return {"role": "assistant", "content": TEXT if self.has_text else "", "tool_calls": calls, **thought}

    def conversation(self) -> dict[str, Any]:
        """The answer, the question before it and the results behind it."""
        message = self.message()
        results = [
            {"role": "tool", "name": call["function"]["name"], "tool_call_id": call["id"], "content": "1"}
            for call in message["tool_calls"]
        ]
        tools = [
            {
                "type": "function",
                "function": {"name": one.name, "description": "", "parameters": one.parameters},
            }
            for one in TOOLS
        ]
        return {
            "messages": [{"role": "user", "content": "How is it?"}, message, *results],
            "tools": tools if self.has_tools else None,
            "add_generation_prompt": False,
            "extra": self.switches,
        }

    def expected(self) -> list[Any]:
        """The parts of the answer."""
        thought = [Reasoning(THOUGHT)] if self.reasons else []
        return [*thought, *([Text(TEXT)] if self.has_text else []), *CALLS[: self.calls]]


ASSISTANT, IM_END = "<|im_start|>assistant\n", "<|im_end|>"
GRANITE = Writing("<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>", reasons=False)
LLAMA = Writing(
    "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", reasons=False, has_text=False, calls=1
)
DEEPSEEK_END = "<｜end▁of▁sentence｜>"
WRITINGS: dict[str, Writing] = {
    "GLM-4.6": Writing("<|assistant|>", "<|observation|>"),
    "GLM-4.7-Flash": Writing("<|assistant|><think>", "<|observation|>"),
    "Mistral-Small-3.2-24B-Instruct-2506": Writing("[/INST]", "</s>", reasons=False, has_text=False),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": Writing(ASSISTANT + OPEN, IM_END),
    "NVIDIA-Nemotron-Nano-v2": Writing("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>", reasons=False),
    "Qwen-Qwen2.5-7B-Instruct": Writing(ASSISTANT, IM_END, reasons=False),
    "Qwen-Qwen3-0.6B": Writing(ASSISTANT, IM_END),
    "Qwen3-Coder": Writing(ASSISTANT, IM_END, reasons=False),
    "Qwen3.5-4B": Writing(ASSISTANT + OPEN, IM_END),
    "deepseek-ai-DeepSeek-V3.1": Writing("<｜Assistant｜><think></think>", DEEPSEEK_END, reasons=False),
    **{
        f"deepseek-ai-DeepSeek-{version}": Writing(
            "<｜Assistant｜><think>", DEEPSEEK_END, switches={"thinking": True}
        )
        for version in ("V3.2", "V4", "V4-Flash-0731")
    },
    "google-gemma-4-31B-it": Writing(
        "<|turn>model\n", "<|tool_response>", has_text=False, switches={"enable_thinking": True}
    ),
    "ibm-granite-granite-4.0": GRANITE,
    "ibm-granite-granite-4.1": GRANITE,
    "llama-cpp-deepseek-r1": Writing(
        "<｜Assistant｜>", DEEPSEEK_END, reasons=False, has_text=False, has_tools=False
    ),
    "meta-llama-Llama-3.1-8B-Instruct": LLAMA,
    "meta-llama-Llama-3.2-3B-Instruct": LLAMA,
    "meta-llama-Llama-3.3-70B-Instruct": LLAMA,
    "mistralai-Ministral-3-14B-Reasoning-2512": Writing("[/INST]", "</s>", reasons=False),
    "mistralai-Mistral-Nemo-Instruct-2407": Writing("[/INST]", "</s>", reasons=False, has_text=False),
    "moonshotai-Kimi-K2": Writing("<|im_assistant|>assistant<|im_middle|>", IM_END, reasons=False),
    "openai-gpt-oss-120b": Writing("<|start|>assistant", "<|call|>", has_text=False, calls=1),
}
"""By template. Those of DeepSeek-R1 and Mistral write text or calls, those of gpt-oss and Llama one call
without text, and Gemma's writes the text behind the calls.
"""


def read(formats: AnswerFormats, pieces: list[str], *, is_open: bool) -> list[Any]:
    """The parts of an answer that comes in pieces; of calls, name and arguments."""
    assert formats.calls is not None
    marks = formats.reasoning
    splitter = None if marks is None else ReasoningSplitter(marks, is_open=is_open)
    reader = AnswerReader(reasoning=splitter, calls=formats.calls.open(TOOLS))
    parts = [part for piece in pieces for part in reader.feed(piece)]
    found = joined([*parts, *reader.finish()])
    return [(part[0], json.loads(part[1])) if isinstance(part, tuple) else part for part in found]


def joined(parts: list[AnswerPart]) -> list[Any]:
    """Join adjacent pieces of one text, of one reasoning and of one call."""
    found: list[Any] = []
    for part in parts:
        match part, found[-1:]:
            case CallStart(_, name), _:
                found.append((name, ""))
            case CallArguments(_, text), [(name, before)]:
                found[-1] = (name, before + text)
            case Text(text), [Text(before)]:
                found[-1] = Text(before + text)
            case Reasoning(text), [Reasoning(before)]:
                found[-1] = Reasoning(before + text)
            case _:
                found.append(part)
    return found


@pytest.mark.parametrize("name", WRITINGS)
def test_calls_text_and_reasoning_come_back_in_every_cut(name: str) -> None:
    writing = WRITINGS[name]
    source = samples.named(TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    compiled = plain_jinja.environment(NOW).from_string(source)
    _, begin, rest = plain_jinja.render(compiled, writing.conversation(), TOKENS).partition(writing.begin)
    answer, end, _ = rest.partition(writing.end)
    assert begin
    assert end
    formats, is_open = choose_formats(PARSERS, [source]), begin.rstrip().endswith("<think>")
    assert read(formats, list(answer), is_open=is_open) == writing.expected()
    for cut in range(len(answer)):
        assert read(formats, [answer[:cut], answer[cut:]], is_open=is_open) == writing.expected(), cut
