from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.errors import CheckpointError, RequestError, TemplateError, TokenizerError
from llmd.api.messages import Grammar
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import AnswerFormats, ParserChoice, choose_formats
from llmd.chat.model_text import ChatPrompt, ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tools.choice import ToolChoice, prepare_tools
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import BOS, TURN_END, TURN_START, write_model


def test_conversation_becomes_tokens_with_its_users_specials_as_text(text: ModelText) -> None:
    ids = text.encode_chat(ChatPrompt([{"role": "user", "content": "a<|im_end|>"}]))
    assert ids == (
        BOS,
        TURN_START,
        *b"user\na<|im_end|>",
        TURN_END,
        *b"\n",
        TURN_START,
        *b"assistant\n",
    )


def test_a_gguf_file_has_the_text_side_that_its_directory_has(
    tmp_path: Path, renderer: TemplateRenderer
) -> None:
    directory = load_model_text(write_model(tmp_path / "d", extra_specials=("<extra>",)), renderer)
    file = load_model_text(write_gguf_model(tmp_path / "m.gguf"), renderer)
    prompt = ChatPrompt([{"role": "user", "content": "größer<|im_end|>?"}])
    assert file.encode_chat(prompt) == directory.encode_chat(prompt)
    assert file.render_chat(prompt).text == directory.render_chat(prompt).text
    assert file.stop_ids == directory.stop_ids == (TURN_END,)
    assert file.tokenizer.vocab_size == directory.tokenizer.vocab_size


def test_open_answer_is_continued(text: ModelText) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "Well"}]
    ids = text.encode_chat(ChatPrompt(messages, add_generation_prompt=False, continue_final_message=True))
    assert bytes(ids[-4:]) == b"Well"


def test_template_sees_the_tools_that_an_answer_may_call(text: ModelText) -> None:
    shown = structs.replace(text, template=ChatTemplate({"default": "{{ tools | length if tools else 0 }}"}))
    tools = prepare_tools([{"function": {"name": "now"}}, {"function": {"name": "today"}}])
    messages = [{"role": "user", "content": "a"}]
    only_one = ToolChoice(names=("now",))
    assert shown.encode_chat(ChatPrompt(messages, tools=tools)) == (ord("2"),)
    assert shown.encode_chat(ChatPrompt(messages, tools=tools, tool_choice=only_one)) == (ord("2"),)
    assert shown.encode_chat(ChatPrompt(messages, tools=tools, tool_choice=ToolChoice("none"))) == (ord("0"),)


HERMES = {parser.name: parser for parser in llmd_parsers()}
ASKED = [{"role": "user", "content": "What is <think>?"}]
NOW = prepare_tools([{"function": {"name": "now"}}, {"function": {"name": "today"}}])


def written(text: ModelText, template: str) -> ModelText:
    """Return the model with another template and the parsers chosen for it."""
    formats = choose_formats(ParserChoice(HERMES), [template])
    return structs.replace(text, template=ChatTemplate({"default": template}), formats=formats)


def parts_of(text: ModelText, prompt: ChatPrompt, answer: str) -> list[AnswerPart]:
    reader = text.answer_reader(prompt, text.encode_chat(prompt))
    return [Text(answer)] if reader is None else [*reader.feed(answer), *reader.finish()]


def test_tools_are_told_where_the_template_does_not_show_them(text: ModelText) -> None:
    bare = written(text, "{% for m in messages %}{{ m.role ~ ':' ~ m.content }}{% endfor %}")
    prompt = ChatPrompt(ASKED, tools=NOW)
    assert b'{"name": "now"' in bytes(bare.encode_chat(prompt))
    none = ChatPrompt(ASKED, tools=NOW, tool_choice=ToolChoice("none"))
    assert bare.encode_chat(none) == tuple(b"user:What is <think>?")


def test_ids_of_calls_are_as_the_template_demands_them(text: ModelText) -> None:
    template = "{% if tools %}{% endif %}{% for m in messages %}{% if m.tool_call_id and m.tool_call_id|length != 9 %}"
    model = written(text, template + "{{ raise_exception('nine!') }}{% endif %}{{ m.role }}{% endfor %}")
    call = {"id": "call_1", "function": {"name": "now"}}
    history: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
    ]
    assert model.encode_chat(ChatPrompt([*ASKED, *history])) == tuple(b"userassistanttool")


def test_calls_are_read_where_tools_may_be_called(text: ModelText) -> None:
    model = written(text, "{{ tools | length if tools else 0 }}<tool_call>")
    call = '<tool_call>{"name": "now"}</tool_call>'
    assert parts_of(model, ChatPrompt(ASKED, tools=NOW), call) == [
        CallStart(0, "now"),
        CallArguments(0, "{}"),
    ]
    for choice in (ToolChoice("none"), ToolChoice(names=())):
        prompt = ChatPrompt(ASKED, tools=NOW, tool_choice=choice)
        assert model.answer_reader(prompt, model.encode_chat(prompt)) is None
    assert parts_of(model, ChatPrompt(ASKED), call) == [Text(call)]


def test_only_tools_of_the_choice_may_be_called() -> None:
    prompt = ChatPrompt(ASKED, tools=NOW, tool_choice=ToolChoice(names=("today",)))
    assert [tool.name for tool in prompt.callable_tools] == ["today"]
    assert [tool["function"]["name"] for tool in prompt.shown_tools] == ["now", "today"]


def test_a_tool_may_be_bound_by_another_schema_than_the_prompt_shows() -> None:
    prompt = ChatPrompt(ASKED, tools=NOW, bindings={"today": {"type": "object", "maxProperties": 0}})
    assert [len(tool.parameters) for tool in prompt.callable_tools] == [2, 2]
    assert prompt.callable_tools[1].parameters["maxProperties"] == 0
    assert "maxProperties" not in prompt.shown_tools[1]["function"]["parameters"]


@pytest.mark.parametrize(
    ("generation", "answer"),
    [
        ("<think>\n", "a</think>b"),
        ("", "<think>a</think>b"),
        ("<think>\n\n</think>\n\n", "<think>a</think>b"),
    ],
)
def test_reasoning_may_be_opened_by_the_prompt(text: ModelText, generation: str, answer: str) -> None:
    model = written(text, f"{{{{ messages[0].content }}}}|{generation}{{# </think> #}}")
    assert parts_of(model, ChatPrompt(ASKED), answer) == [Reasoning("a"), Text("b")]


@pytest.mark.parametrize(
    ("begun", "parts"),
    [
        ("<think>Well", [Reasoning("a"), Text("b")]),
        ("<think>x</think>Well", [Text("a</think>b")]),
        ("Well", [Text("a</think>b")]),
    ],
)
def test_answer_that_is_continued_goes_on_where_it_was(
    text: ModelText, begun: str, parts: list[AnswerPart]
) -> None:
    model = written(text, "{{ messages[-1].content }}{# </think> #}")
    messages = [*ASKED, {"role": "assistant", "content": begun}]
    prompt = ChatPrompt(messages, add_generation_prompt=False, continue_final_message=True)
    assert parts_of(model, prompt, "a</think>b") == parts


def test_reasoning_stays_in_the_text_where_it_is_not_to_be_split(text: ModelText) -> None:
    model = written(text, "x{# </think> #}")
    prompt = ChatPrompt(ASKED, splits_reasoning=False)
    assert model.answer_reader(prompt, model.encode_chat(prompt)) is None


def test_marks_of_reasoning_and_calls_are_seen(text: ModelText) -> None:
    model = written(text, "x{# [TOOL_CALLS] [THINK] #}")
    prompt = ChatPrompt(ASKED, tools=NOW)
    reader = model.answer_reader(prompt, model.encode_chat(prompt))
    assert reader is not None
    assert reader.marks == {"[TOOL_CALLS]", "[THINK]", "[/THINK]"}


def test_answers_are_bound_to_the_tools_that_they_may_call(text: ModelText) -> None:
    model = written(text, "{{ tools }}<tool_call>{# </think> #}")
    ids = (1,)
    assert model.answer_grammar(None, ChatPrompt(ASKED), ids) is None
    assert (
        model.answer_grammar(None, ChatPrompt(ASKED, tools=NOW, tool_choice=ToolChoice("none")), ids) is None
    )
    forced = ChatPrompt(ASKED, tools=NOW, tool_choice=ToolChoice("required", ("now",)))
    grammar = model.answer_grammar(None, forced, ids)
    assert grammar is not None
    assert "now" in grammar.text
    assert "today" not in grammar.text
    assert "</think>" in grammar.text


HARMONY = "<|start|>assistant{# <|channel|>analysis<|message|> #}"
FINAL = "<|channel|>final<|message|>"


def test_headers_of_texts_are_read_without_tools_too(text: ModelText) -> None:
    model = written(text, HARMONY)
    answer = f"<|channel|>analysis<|message|>a<|end|><|start|>assistant{FINAL}b"
    assert parts_of(model, ChatPrompt(ASKED), answer) == [Reasoning("a"), Text("b")]
    whole = ChatPrompt(ASKED, splits_reasoning=False)
    assert parts_of(model, whole, f"{FINAL}b") == [Text("b")]


def test_grammars_demand_the_header_of_a_text(text: ModelText) -> None:
    model = written(text, HARMONY)
    ids = (1,)
    assert model.answer_grammar(None, ChatPrompt(ASKED), ids) is None
    chosen = model.answer_grammar(Grammar("choice", '["x"]'), ChatPrompt(ASKED), ids)
    assert chosen is not None
    assert FINAL in chosen.text
    assert "<|start|>assistant" in chosen.text
    begun = ChatPrompt(ASKED, add_generation_prompt=False, continue_final_message=True)
    continued = model.answer_grammar(Grammar("choice", '["x"]'), begun, ids)
    assert continued == Grammar("choice", '["x"]')


def test_required_call_needs_a_parser(text: ModelText) -> None:
    silent = structs.replace(text, formats=AnswerFormats())
    prompt = ChatPrompt(ASKED, tools=NOW, tool_choice=ToolChoice("required"))
    with pytest.raises(RequestError, match="calls of this model are not parsed") as refused:
        silent.answer_grammar(None, prompt, (1,))
    assert refused.value.param == "tool_choice"
    assert silent.answer_grammar(None, ChatPrompt(ASKED, tools=NOW), (1,)) is None


def test_plain_prompts_read_special_tokens(text: ModelText) -> None:
    assert text.encode_text("a<|im_end|>") == (ord("a"), TURN_END)


def test_answers_end_at_the_configured_and_the_templates_tokens(text: ModelText) -> None:
    assert text.stop_ids == (TURN_END,)


def test_model_without_a_template_completes_and_refuses_to_chat(
    model_directory: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(model_directory, tmp_path / "plain"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    with TemplateRenderer() as renderer:
        text = load_model_text(directory, renderer)
        assert text.encode_text("a") == (ord("a"),)
        with pytest.raises(TemplateError, match="no chat template"):
            text.encode_chat(ChatPrompt([{"role": "user", "content": "a"}]))


def test_damaged_tokenizer_is_an_error_that_names_the_file(model_directory: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(model_directory, tmp_path / "damaged"))
    (directory / "tokenizer.json").write_text("{")
    with TemplateRenderer() as renderer, pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        load_model_text(directory, renderer)


def test_a_directory_without_a_configuration_is_no_model(tmp_path: Path) -> None:
    with TemplateRenderer() as renderer, pytest.raises(CheckpointError, match=r"config\.json"):
        load_model_text(tmp_path, renderer)
