from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.parsing import CallFormat, ChoiceTerm, ReasoningMarks, Term, TextTerm
from llmd.api.parts import AnswerPart, CallStart, Reasoning
from llmd.api.plugins import Parser
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.reasoning import ReasoningSplitter
from tests.daemon.builtin.parsers.long_answers import EXPECTED, LONG, LONG_WITHOUT_TEXT, WITHOUT_TEXT
from tests.daemon.builtin.parsers.readings import TOOLS, cuts_of, joined, merged, run
from tests.daemon.builtin.parsers.recorded_answers import RecordedAnswer, recorded_answers

PARSERS = {parser.name: parser for parser in llmd_parsers()}
CALLS = sorted(name for name, parser in PARSERS.items() if parser.reads == "calls")
TEMPLATES = Path(__file__).parents[3] / "golden" / "templates"
NEAR = 3
"""Two cuts of an answer are at most this many characters apart; long answers are cut once."""
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
        ("'｜DSML｜' … function_calls>", "deepseek_v32"),
        ("'｜DSML｜' … tool_calls>", "deepseek_v4"),
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


def marks_of(name: str) -> ReasoningMarks:
    loaded = PARSERS[name].load()
    assert isinstance(loaded, ReasoningMarks)
    return loaded


def text_of(answer: RecordedAnswer) -> str:
    """The whole answer."""
    if not answer.thought or answer.reasoning is None:
        return answer.rest
    marks = marks_of(answer.reasoning)
    begin = "" if answer.is_open else marks.begin
    return f"{begin}\n{answer.thought}\n{marks.end}\n\n{answer.rest}"


def parts_of(answer: RecordedAnswer, pieces: Iterable[str]) -> list[AnswerPart]:
    """What a client gets if the answer arrives in pieces, independently of how they are split."""
    splitter = None
    if answer.reasoning is not None:
        splitter = ReasoningSplitter(marks_of(answer.reasoning), is_open=answer.is_open)
    reader = AnswerReader(reasoning=splitter, calls=calls_of(answer.calls).open(TOOLS))
    parts = [part for piece in pieces for part in reader.feed(piece)]
    return merged([*parts, *reader.finish()])


@pytest.mark.parametrize("answer", [*recorded_answers()], ids=lambda answer: answer.name)
def test_recorded_answers_are_read_in_every_cut(answer: RecordedAnswer) -> None:
    """They are written by hand after the templates of the families: no model generated them."""
    text, whole = text_of(answer), parts_of(answer, [text_of(answer)])
    near = 0 if answer.is_long else NEAR
    for first in range(len(text)):
        for second in range(first, min(first + near, len(text)) + 1):
            pieces = [text[:first], text[first:second], text[second:]]
            assert parts_of(answer, pieces) == whole, pieces


@pytest.mark.parametrize("calls", [calls for calls in CALLS if calls != "harmony"])
def test_recorded_answers_have_calls_and_their_reasoning_apart(calls: str) -> None:
    """They are written by hand after the templates of the families: no model generated them."""
    answers = [answer for answer in recorded_answers() if answer.calls == calls]
    for answer in answers:
        parts = parts_of(answer, [text_of(answer)])
        if answer.thought:
            assert parts.pop(0) == Reasoning(answer.thought)
        assert parts == merged(run(calls_of(calls).open(TOOLS), [answer.rest]))
        assert any(isinstance(part, CallStart) for part in parts)
    assert answers


@pytest.mark.parametrize("calls", [calls for calls in CALLS if calls != "harmony"])
def test_several_calls_with_nested_arguments_and_text_between_them_are_read(calls: str) -> None:
    """The answers are written by hand after the templates of the families: no model generated them.

    Text behind a call keeps the line break before it.
    """
    answer, expected = LONG.get(calls, ""), EXPECTED
    if not answer:
        answer, expected = LONG_WITHOUT_TEXT[calls], WITHOUT_TEXT
    parts = joined(run(calls_of(calls).open(TOOLS), [answer]))
    read = [one.lstrip("\n") if isinstance(one, str) else (one[0], json.loads(one[1])) for one in parts]
    assert read == expected


def shortest(term: Term) -> str:
    match term:
        case str():
            return term
        case TextTerm(end):
            return f"0{end}"
        case ChoiceTerm(options):
            return min(("".join(map(shortest, option)) for option in options), key=len)
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
