"""The text side of a served model: conversations and prompts to tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.api.errors import RequestError, TemplateError
from llmd.api.messages import Grammar
from llmd.api.out_of_memory import memory_errors
from llmd.api.parsing import Tool
from llmd.chat.answers.answer_formats import AnswerFormats, ParserChoice, choose_formats
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.reasoning import ReasoningSplitter
from llmd.chat.answers.stop_tokens import end_of_turn_ids, stop_token_ids
from llmd.chat.generation_defaults import GenerationDefaults, read_generation_defaults
from llmd.chat.grammars.answer_grammar import ModelGrammars
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.opening import with_opening
from llmd.chat.prompt import encode_prompt
from llmd.chat.rerankers.reranker import Reranker
from llmd.chat.rerankers.reranker_files import NO_RERANKER, read_reranker
from llmd.chat.templates.adapted_messages import adapted_messages
from llmd.chat.templates.literals import RenderedPrompt
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate, load_chat_template
from llmd.chat.templates.template_messages import prepare_messages
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tools.binding import ToolBinding
from llmd.chat.tools.choice import ToolChoice
from llmd.models.config_file import read_config

NO_PARSERS = ParserChoice()
# More tokens than the mark with which a template opens reasoning.
PROMPT_END_LEN = 32


class ChatPrompt(Struct, frozen=True):
    """A conversation and how it becomes a prompt. ``tools`` are in OpenAI's shape, as `prepare_tools` returns them.

    ``bindings`` has, by the names of tools, the schemas that bind their arguments in place of those that the prompt shows.

    Not ``splits_reasoning``: what the model thinks stays in the text of its answer. After ``reasoning_budget`` tokens it
    thinks no more, where the mark that ends its reasoning is one token.
    """

    messages: Sequence[Mapping[str, Any]]
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    variables: Mapping[str, Any] = {}
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: ToolChoice = ToolChoice()
    bindings: Mapping[str, Mapping[str, Any]] = {}
    splits_reasoning: bool = True
    reasoning_budget: int | None = None

    @property
    def binds_answers(self) -> bool:
        """Whether something of it may bind an answer."""
        return bool(self.callable_tools) or self.reasoning_budget is not None

    @property
    def shown_tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools that the prompt shows."""
        return () if self.tool_choice.mode == "none" else self.tools

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The tools that an answer may call."""
        functions = [tool["function"] for tool in self.shown_tools]
        names = self.tool_choice.names
        return tuple(
            Tool(function["name"], self.bindings.get(function["name"], function["parameters"]))
            for function in functions
            if names is None or function["name"] in names
        )


class ModelText(Struct, frozen=True):
    """Tokenizer, template, grammars and stop tokens. Everything here may block: call it in a thread.

    ``template`` and ``reranker`` may be the reason why there is none. ``opening`` are messages that stand before every conversation;
    ``stops`` are stop strings where a request has none.
    """

    tokenizer: Tokenizer
    renderer: TemplateRenderer
    template: ChatTemplate | TemplateError
    defaults: GenerationDefaults
    stop_ids: tuple[int, ...]
    grammars: ModelGrammars
    formats: AnswerFormats = AnswerFormats()
    opening: tuple[Mapping[str, Any], ...] = ()
    stops: tuple[str, ...] = ()
    reranker: Reranker | RequestError = NO_RERANKER

    def encode_text(self, text: str) -> tuple[int, ...]:
        """A plain prompt: BOS once, special tokens read as such."""
        return tuple(self.tokenizer.encode(text))

    def encode_chat(self, prompt: ChatPrompt) -> tuple[int, ...]:
        """A conversation in the model's own form; raises as `render_chat` does."""
        return tuple(encode_prompt(self.tokenizer, self.render_chat(prompt)))

    def encode_pair(self, query: str, document: str, instruction: str | None = None) -> tuple[int, ...]:
        """What a reranker is asked about a document.

        Raises:
            RequestError: the model is none, or its template refuses the texts.
            TemplateError: its template is broken or too slow.
        """
        rendered = self.as_reranker().render(self.renderer, query, document, instruction)
        return tuple(encode_prompt(self.tokenizer, rendered))

    def as_reranker(self) -> Reranker:
        """How the model ranks.

        Raises:
            RequestError: it does not.
        """
        if isinstance(self.reranker, RequestError):
            raise self.reranker.with_traceback(None)
        return self.reranker

    def render_chat(self, prompt: ChatPrompt) -> RenderedPrompt:
        """The text that a conversation becomes.

        Raises:
            TemplateError: the model has no template, or it is broken or too slow.
            RequestError: the model ranks, the messages are malformed, or the template refuses them.
        """
        if isinstance(self.template, TemplateError):
            raise self.template.with_traceback(None)
        if isinstance(self.reranker, Reranker):
            raise RequestError(
                "this model ranks documents, it does not chat",
                param="model",
                hint="send them to /v1/rerank, or name a model that chats",
            )
        messages = with_opening(self.opening, prompt.messages)
        separator = self.renderer.separator(self.template, with_tools=bool(prompt.shown_tools))
        return self.renderer.render(
            self.template,
            adapted_messages(messages, prompt.shown_tools, self.formats, separator),
            tools=prompt.shown_tools,
            add_generation_prompt=prompt.add_generation_prompt,
            continue_final_message=prompt.continue_final_message,
            extra=prompt.variables,
        )

    def answer_reader(self, prompt: ChatPrompt, ids: Sequence[int]) -> AnswerReader | None:
        """Tells reasoning and calls in an answer to ``prompt``, which became ``ids``; None: it is text alone."""
        calls, marks = self.formats.calls, self.formats.reasoning
        tools = prompt.callable_tools
        reader = calls.open(tools) if calls is not None and tools else None
        splitter = None
        if marks is not None and prompt.splits_reasoning:
            splitter = ReasoningSplitter(marks, is_open=self._opens_reasoning(prompt, ids))
        if reader is None and splitter is None:
            return None
        seen = (
            *(calls.marks if calls and reader else ()),
            *((marks.begin, marks.end) if splitter and marks else ()),
        )
        return AnswerReader(reasoning=splitter, calls=reader, marks=frozenset(seen))

    def answer_grammar(
        self, grammar: Grammar | None, prompt: ChatPrompt, ids: Sequence[int]
    ) -> Grammar | None:
        """What binds an answer to ``prompt``, which became ``ids``; ``grammar`` binds its text without reasoning and calls.

        Raises:
            GrammarError: a call is required whose arguments cannot be bound.
            RequestError: a call is required, and the model has no parser for calls.
        """
        grammar = self._bound_to_tools(grammar, prompt)
        marks = self.formats.reasoning
        if marks is None or prompt.continue_final_message or self._ends_with(ids, marks.end):
            return grammar
        is_open = self._opens_reasoning(prompt, ids)
        return self.grammars.behind(grammar, marks, is_open=is_open, budget=prompt.reasoning_budget)

    def _bound_to_tools(self, grammar: Grammar | None, prompt: ChatPrompt) -> Grammar | None:
        tools, choice, form = prompt.callable_tools, prompt.tool_choice, self.formats.calls
        if form is None and choice.mode == "required":
            raise RequestError(
                "a call is required, and calls of this model are not read",
                param="tool_choice",
                hint="set tool_parser to auto or to a parser by name",
            )
        if form is None or not tools:
            return grammar
        marks = self.formats.reasoning
        binding = ToolBinding(form, self.grammars)
        return binding.bind(tools, choice, grammar, marks.begin if marks is not None else None) or grammar

    def _ends_with(self, ids: Sequence[int], mark: str) -> bool:
        return self.tokenizer.decode(ids[-PROMPT_END_LEN:]).rstrip().endswith(mark)

    def _opens_reasoning(self, prompt: ChatPrompt, ids: Sequence[int]) -> bool:
        """Whether an answer goes on reasoning that the prompt has begun."""
        marks = self.formats.reasoning
        if marks is None:
            return False
        if prompt.continue_final_message:
            begun = prepare_messages(prompt.messages[-1:])[0]["content"]
            return bool(begun.rfind(marks.begin) > begun.rfind(marks.end))
        return self._ends_with(ids, marks.begin)


@memory_errors()
def load_model_text(
    directory: Path,
    renderer: TemplateRenderer,
    parsers: ParserChoice = NO_PARSERS,
    checker: GrammarChecker | None = None,
) -> ModelText:
    """Read a model directory's text files. Answers are read by some of ``parsers``, or are text alone.

    ``checker`` tries the grammars of requests; without one, the engine alone does.

    Raises:
        ConfigError: a parser was asked for that there is not.
        ModelError: the directory is no model; the tokenizer or ``generation_config.json`` cannot be used.
        MemoryBudgetError: there is not enough memory.
    """
    # Only a daemon with a model needs the three tokenizer libraries; importing them takes a tenth of its start.
    from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

    read_config(directory)  # a directory without one is no model: said before its tokenizer is missed
    tokenizer = load_tokenizer(directory)
    template = _template(directory, tokenizer)
    stops = stop_token_ids(directory, tokenizer)
    if isinstance(template, ChatTemplate):
        stops += end_of_turn_ids(renderer, template, tokenizer)
    stop_ids = tuple(sorted(set(stops)))
    sources = template.sources.values() if isinstance(template, ChatTemplate) else ()
    formats = choose_formats(parsers, sources)
    return ModelText(
        tokenizer=tokenizer,
        renderer=renderer,
        template=template,
        defaults=read_generation_defaults(directory),
        stop_ids=stop_ids,
        grammars=ModelGrammars(tokenizer, stop_ids, checker, formats.reasoning),
        formats=formats,
        reranker=read_reranker(directory, tokenizer, template),
    )


def _template(directory: Path, tokenizer: Tokenizer) -> ChatTemplate | TemplateError:
    """A model without a template still completes prompts; who chats with it gets the reason."""
    try:
        return load_chat_template(directory, tokenizer)
    except TemplateError as error:
        return error
