"""Answers for every parser of calls, with reasoning before the calls if models of the family reason.

No model generated them: they are written by hand, after the chat templates and documentation of the families.
The tests of the families say what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from tests.daemon.builtin.parsers import (
    test_deepseek,
    test_dsml,
    test_glm,
    test_harmony,
    test_hermes,
    test_kimi,
    test_nemotron,
    test_qwen3_coder,
)
from tests.daemon.builtin.parsers.long_answers import LONG, LONG_WITHOUT_TEXT

LISTED = '[{"name": "get_weather", "arguments": {"city": "Zürich"}}, {"name": "now", "arguments": {}}]'
GEMMA = "Yes.{0}call:get_weather{{city:{2}Zürich, {{a}}{2},days:3}}{1}{0}call:now{{}}{1}"
LLAMA = '{"name": "get_weather", "parameters": {"city": "x"}}'
MISTRAL = 'Sure.[TOOL_CALLS]get_weather[CALL_ID]VvvODy9mT[ARGS]{"city": "x"}\n[TOOL_CALLS]now[ARGS]{}'
THOUGHT = "Is it <b>warm</b>?\n\nHere is [what] I ask."
"""Reasoning whose text contains beginnings of marks."""

FAMILIES: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("deepseek_v3", "think", (test_deepseek.V3,)),
    ("deepseek_v31", "think", (test_deepseek.V31,)),
    ("deepseek_v32", "think", (test_dsml.ANSWER,)),
    ("deepseek_v4", "think", (test_dsml.V4_ANSWER,)),
    ("functiongemma", None, (GEMMA.format("<start_function_call>", "<end_function_call>", "<escape>"),)),
    ("gemma4", "gemma4_thought", (GEMMA.format("<|tool_call>", "<tool_call|>", '<|"|>'),)),
    ("glm45", "think", (test_glm.WITH_LINES, test_glm.IN_ONE_LINE)),
    ("granite", "granite_thoughts", (f"Well.\n<|tool_call|>{LISTED}\n", f"<tool_call>{LISTED}")),
    ("hermes", "think", (test_hermes.ANSWER,)),
    ("kimi_k2", "think", (test_kimi.CALLS, test_kimi.SPACED, test_kimi.SINGULAR)),
    ("llama3_json", None, (f"<|python_tag|>{LLAMA}", f'{LLAMA}; {{"name": "now", "parameters": {{}}}}')),
    ("mistral", None, (f"Sure. [TOOL_CALLS] {LISTED}",)),
    ("mistral_v11", "mistral_think", (MISTRAL,)),
    ("nemotron_json", "think", (test_nemotron.ANSWER,)),
    ("phi4_mini_json", None, (f"<|tool_call|>{LISTED}<|/tool_call|>", f"functools{LISTED}")),
    ("pythonic", None, ("<|python_start|>[get_weather(city='Zürich)'), now()]<|python_end|>",)),
    ("qwen3_coder", "think", (test_qwen3_coder.ANSWER,)),
)
"""The parser of calls, that of reasoning if models of the family reason, and answers without reasoning."""


class RecordedAnswer(Struct, frozen=True):
    """An answer and the parsers that read it."""

    calls: str
    reasoning: str | None
    rest: str
    """The answer behind its reasoning."""
    thought: str = ""
    """Its reasoning."""
    is_open: bool = False
    """The prompt ends with the mark that begins reasoning."""
    is_long: bool = False
    """It is one of `long_answers`."""

    @property
    def name(self) -> str:
        kind = ", several calls" if self.is_long else ""
        if self.thought:
            kind = " behind open reasoning" if self.is_open else " behind reasoning"
        return f"{self.calls}{kind}"


def recorded_answers() -> Iterator[RecordedAnswer]:
    """Yield the answers of all families."""
    for calls, reasoning, answers in FAMILIES:
        yield from (RecordedAnswer(calls, None, answer) for answer in answers)
        if reasoning is not None:
            for is_open in (False, True):
                yield RecordedAnswer(calls, reasoning, answers[0], THOUGHT, is_open)
    for calls, answer in (LONG | LONG_WITHOUT_TEXT).items():
        yield RecordedAnswer(calls, None, answer, is_long=True)
    for answer, _ in test_harmony.ANSWERS.values():
        yield RecordedAnswer("harmony", "harmony_analysis", answer)
