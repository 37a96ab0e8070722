"""Entry point of the built-in parsers. A family's module is imported when one of its models is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from llmd.api import Parser, ReasoningMarks, hookimpl
from llmd.api.parsing import CallFormat

LLMD_API = 2

# Names are vLLM's, which users know. Then: module and function, texts that must all be in the chat template,
# texts that must not be in it, and a score. The highest score wins if several parsers match.
CALLS = (
    ("hermes", "hermes.load", ("<tool_call>",), ("<arg_key>",), 1),
    ("qwen3_coder", "qwen3_coder.load", ("<tool_call>", "<function="), (), 2),
    ("llama3_json", "llama3.load", ("<|start_header_id|>", '"parameters"'), (), 1),
    ("pythonic", "pythonic.load", ("<|header_start|>", "<|python_start|>"), (), 1),
    ("mistral", "mistral.load", ("[TOOL_CALLS]",), ("[ARGS]",), 1),
    ("mistral_v11", "mistral.load_v11", ("[TOOL_CALLS]", "[ARGS]"), (), 1),
    ("phi4_mini_json", "phi4_mini.load", ("<|tool|>",), (), 1),
    ("functiongemma", "gemma.load_function_gemma", ("<start_function_call>",), (), 1),
    ("gemma4", "gemma.load_gemma4", ("<|tool_call>",), (), 1),
    ("deepseek_v3", "deepseek.load_v3", ("<｜tool▁calls▁begin｜>", "```json"), (), 2),
    ("deepseek_v31", "deepseek.load_v31", ("<｜tool▁calls▁begin｜>",), (), 1),
    ("deepseek_v32", "dsml.load_v32", ("｜DSML｜", "function_calls"), (), 2),
    ("deepseek_v4", "dsml.load_v4", ("｜DSML｜", "tool_calls>"), (), 2),
    ("granite", "granite.load", ("<|tool_call|>",), (), 2),
    ("glm45", "glm.load", ("<tool_call>", "<arg_key>"), (), 2),
    ("nemotron_json", "nemotron.load", ("<TOOLCALL>",), (), 2),
    ("kimi_k2", "kimi.load", ("<|tool_call_argument_begin|>",), (), 2),
    ("harmony", "harmony.load", ("<|channel|>", "<|message|>"), (), 2),
)
REASONING = (
    ("think", "</think>", ReasoningMarks("<think>", "</think>"), 1),
    ("mistral_think", "[THINK]", ReasoningMarks("[THINK]", "[/THINK]"), 2),
    (
        "granite_thoughts",
        "Here is my thought process",
        ReasoningMarks("Here is my thought process:", "Here is my response:"),
        2,
    ),
    ("seed_think", "<seed:think>", ReasoningMarks("<seed:think>", "</seed:think>"), 2),
    ("gemma4_thought", "<|channel>", ReasoningMarks("<|channel>thought", "<channel|>"), 2),
    (
        "harmony_analysis",
        "<|channel|>analysis",
        ReasoningMarks("<|channel|>analysis<|message|>", "<|end|>", after="<|start|>assistant"),
        2,
    ),
)


@hookimpl
def llmd_parsers() -> Sequence[Parser]:
    calls = [
        Parser(name, "calls", partial(_score, every, none, number), partial(_load, where))
        for name, where, every, none, number in CALLS
    ]
    reasoning = [
        Parser(name, "reasoning", partial(_score, (text,), (), number), partial(_marks, marks))
        for name, text, marks, number in REASONING
    ]
    return [*calls, *reasoning]


def _score(every: Sequence[str], none: Sequence[str], number: int, template: str) -> int:
    matches = all(text in template for text in every) and not any(text in template for text in none)
    return number if matches else 0


def _load(where: str) -> CallFormat:
    module, _, function = where.partition(".")
    load: Callable[[], CallFormat] = getattr(import_module(f"llmd.builtin.parsers.{module}"), function)
    return load()


def _marks(marks: ReasoningMarks) -> ReasoningMarks:
    return marks
