from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.parsing import CallFormat, ReasoningMarks, Term, TextTerm
from llmd.api.plugins import Parser
from llmd.builtin.parsers.plugin import llmd_parsers
from tests.daemon.builtin.parsers.readings import TOOLS, cuts_of, joined, run

PARSERS = {parser.name: parser for parser in llmd_parsers()}
CALLS = sorted(name for name, parser in PARSERS.items() if parser.reads == "calls")
TEMPLATES = Path(__file__).parents[3] / "golden" / "templates"
SCRAPS = (
    "now",
    "get_weather",
    '{"name": "now", "arguments": {}}',
    '{"name": "get_weather", "parameters": {"city": "x"}}',
    '{"city": "x"}',
    '"',
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    ",",
    ";",
    "\n",
    " ",
    "\\",
    "<function=now>",
    "</function>",
    "<parameter=city>",
    "</parameter>",
    "call:now{",
    "now()",
    "get_weather(city='x')",
    "```json\n",
    "é",
    "<",
)


def calls_of(name: str) -> CallFormat:
    loaded = PARSERS[name].load()
    assert isinstance(loaded, CallFormat)
    return loaded


def best(reads: str, template: str) -> str | None:
    scores = {name: one.matches(template) for name, one in sorted(PARSERS.items()) if one.reads == reads}
    name = max(scores, key=lambda one: scores[one])
    return name if scores[name] else None


@pytest.mark.parametrize(
    ("family", "calls", "reasoning"),
    [
        ("qwen2", "hermes", None),
        ("qwen3", "hermes", "think"),
        ("llama3", "llama3_json", None),
        ("mistral", "mistral", None),
        ("kimi", "kimi_k2", "think"),
        ("granite", "granite", None),
        ("gemma3", None, None),
        ("phi3", None, None),
        ("smollm", None, None),
    ],
)
def test_family_is_told_by_its_template(family: str, calls: str | None, reasoning: str | None) -> None:
    template = (TEMPLATES / f"{family}.jinja").read_text()
    assert (best("calls", template), best("reasoning", template)) == (calls, reasoning)


@pytest.mark.parametrize(
    ("template", "calls"),
    [
        ("<tool_call>\n<function=' + name", "qwen3_coder"),
        ("<tool_call>' + name + '<arg_key>", "glm45"),
        ("[TOOL_CALLS]' + name + '[ARGS]", "mistral_v11"),
        ("<｜tool▁calls▁begin｜>…```json", "deepseek_v3"),
        ("<｜tool▁calls▁begin｜>…", "deepseek_v31"),
        ("'｜DSML｜' … function_calls", "deepseek_v32"),
        ("<|header_start|>…<|python_start|>", "pythonic"),
        ("<|tool|>' + message['tools'] + '<|/tool|>", "phi4_mini_json"),
        ("<start_function_call>call:", "functiongemma"),
        ("<|tool_call>call:", "gemma4"),
        ("<TOOLCALL>[' + calls + ']</TOOLCALL>", "nemotron_json"),
        ("<|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>", "kimi_k2"),
        ("<|start|>assistant<|channel|>final<|message|>", "harmony"),
    ],
)
def test_most_special_parser_wins(template: str, calls: str | None) -> None:
    assert best("calls", template) == calls


def test_reasoning_parsers_give_their_marks() -> None:
    for parser in PARSERS.values():
        assert isinstance(parser.load(), ReasoningMarks if parser.reads == "reasoning" else CallFormat)


def test_every_parser_is_described_by_name() -> None:
    assert all(isinstance(parser, Parser) for parser in llmd_parsers())
    assert len(PARSERS) == len(llmd_parsers())


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_any_cut_gives_the_same_parts_and_nothing_is_lost(name: str, data: st.DataObject) -> None:
    form = calls_of(name)
    begin = form.grammar(TOOLS).trigger
    scraps = st.sampled_from([*form.marks, begin, *SCRAPS]) | st.text(max_size=3)
    text = data.draw(st.lists(scraps, max_size=14).map("".join))
    whole = joined(run(form.open(TOOLS), [text]))
    assert joined(run(form.open(TOOLS), data.draw(cuts_of(text)))) == whole
    assert joined(run(form.open(TOOLS), list(text))) == whole
    texts = "".join(one for one in whole if isinstance(one, str))
    if texts == "".join(str(one) for one in whole) and not form.text_begin:
        assert texts == text
    # The text between calls is a subsequence of the answer.
    remaining = iter(text)
    assert all(char in remaining for char in texts)


def shortest(term: Term) -> str:
    match term:
        case str():
            return term
        case TextTerm(end):
            return f"0{end}"
        case _:
            return "{}"


@pytest.mark.parametrize("name", CALLS)
def test_parser_reads_what_its_grammar_writes(name: str) -> None:
    """The text is the shortest that the grammar allows; the only free texts are numbers."""
    form = calls_of(name)
    grammar = form.grammar(TOOLS[1:])
    (terms,) = grammar.calls
    call = "".join(map(shortest, terms))
    text = f"{grammar.trigger}{grammar.opening}{call}{grammar.separator}{call}{grammar.closing}"
    assert joined(run(form.open(TOOLS), [text])) == [("now", "{}"), ("now", "{}")]
