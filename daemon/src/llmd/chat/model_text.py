"""The text side of a served model: turns conversations and prompts into tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from llmd.chat.answers.stop_tokens import end_of_turn_ids, ids_of, stop_token_ids
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
from llmd.grammar.lark import any_text, behind_text
from llmd.models.config_file import read_config

NO_PARSERS = ParserChoice()
# More tokens than any mark with which a template opens reasoning.
PROMPT_END_LEN = 32


class ChatPrompt(Struct, frozen=True):
    """A conversation and how it becomes a prompt."""

    messages: Sequence[Mapping[str, Any]]
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    variables: Mapping[str, Any] = {}
    """Further variables of the template."""
    tools: Sequence[Mapping[str, Any]] = ()
    """In OpenAI's shape, as `prepare_tools` returns them."""
    tool_choice: ToolChoice = ToolChoice()
    bindings: Mapping[str, Mapping[str, Any]] = {}
    """Schemas by tool name that constrain arguments instead of those shown in the prompt."""
    splits_reasoning: bool = True
    """False: reasoning stays in the text of the answer."""
    reasoning_budget: int | None = None
    """Reasoning ends after this many tokens, if the mark that ends it is one token."""

    @property
    def binds_answers(self) -> bool:
        """Whether tools or a reasoning budget may constrain the answer."""
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
    """Tokenizer, template, grammars and stop tokens. All methods may block: call them in a thread."""

    tokenizer: Tokenizer
    renderer: TemplateRenderer
    template: ChatTemplate | TemplateError
    """The error to raise if the model has no usable template."""
    defaults: GenerationDefaults
    stop_ids: tuple[int, ...]
    grammars: ModelGrammars
    formats: AnswerFormats = AnswerFormats()
    opening: tuple[Mapping[str, Any], ...] = ()
    """Messages that precede every conversation."""
    stops: tuple[str, ...] = ()
    """Stop strings for requests that set none."""
    reranker: Reranker | RequestError = NO_RERANKER
    """The error to raise if the model does not rank."""

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Encode a plain prompt: BOS is added once, special tokens in the text count as such."""
        return tuple(self.tokenizer.encode(text))

    def encode_chat(self, prompt: ChatPrompt) -> tuple[int, ...]:
        """Encode a conversation with the model's template; raise as `render_chat` does."""
        return tuple(encode_prompt(self.tokenizer, self.render_chat(prompt)))

    def encode_pair(self, query: str, document: str, instruction: str | None = None) -> tuple[int, ...]:
        """Encode the prompt with which a reranker scores a document.

        Raises:
            RequestError: the model is not a reranker, or its template rejects the texts.
            TemplateError: its template is broken or too slow.
        """
        rendered = self.as_reranker().render(self.renderer, query, document, instruction)
        return tuple(encode_prompt(self.tokenizer, rendered))

    def as_reranker(self) -> Reranker:
        """Return the reranker.

        Raises:
            RequestError: the model does not rank.
        """
        if isinstance(self.reranker, RequestError):
            raise self.reranker.with_traceback(None)
        return self.reranker

    def render_chat(self, prompt: ChatPrompt) -> RenderedPrompt:
        """Render a conversation with the model's template.

        Raises:
            TemplateError: the model has no template, or it is broken or too slow.
            RequestError: the model is a reranker, the messages are malformed, or the template rejects them.
        """
        if isinstance(self.template, TemplateError):
            raise self.template.with_traceback(None)
        if isinstance(self.reranker, Reranker):
            raise RequestError(
                "this model ranks documents and does not chat",
                param="model",
                hint="use /v1/rerank, or choose a chat model",
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
        """Return a reader that separates reasoning, calls and text of an answer; None: it is plain text.

        ``ids`` is the encoded ``prompt``.
        """
        calls, marks = self.formats.calls, self.formats.reasoning
        tools = prompt.callable_tools
        reader = calls.open(tools) if calls is not None and (tools or calls.text_begin) else None
        splitter = None
        if marks is not None and prompt.splits_reasoning:
            splitter = ReasoningSplitter(marks, is_open=self._opens_reasoning(prompt, ids))
        if reader is None and splitter is None:
            return None
        seen = (
            *(calls.marks if calls and reader else ()),
            *((marks.begin, marks.end) if splitter and marks else ()),
        )
        return AnswerReader(reasoning=splitter, calls=reader, marks=self._special_tokens_in(seen))

    def _special_tokens_in(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the texts and the special tokens that they contain."""
        pieces = (piece for text in texts for piece in self.tokenizer.specials.split(text))
        return frozenset([*texts, *(piece.text for piece in pieces if piece.token is not None)])

    def answer_grammar(
        self, grammar: Grammar | None, prompt: ChatPrompt, ids: Sequence[int]
    ) -> Grammar | None:
        """Return the grammar that constrains an answer to ``prompt``, which was encoded as ``ids``.

        ``grammar`` constrains the text of the answer, without reasoning and calls.

        Raises:
            GrammarError: a call is required whose arguments cannot be constrained.
            RequestError: a call is required, but the model has no parser for calls.
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
                "a tool call is required, but tool calls of this model are not parsed",
                param="tool_choice",
                hint="set tool_parser to auto or to the name of a parser",
            )
        if form is None or not tools:
            return self._behind_text_begin(grammar, prompt)
        marks = self.formats.reasoning
        binding = ToolBinding(form, self.grammars)
        return binding.bind(tools, choice, grammar, marks.begin if marks is not None else None) or grammar

    def _behind_text_begin(self, grammar: Grammar | None, prompt: ChatPrompt) -> Grammar | None:
        form = self.formats.calls
        is_free = grammar is None and prompt.reasoning_budget is None
        if form is None or not form.text_begin or is_free or prompt.continue_final_message:
            return grammar
        return behind_text(self.grammars.expression(form.text_begin), grammar or any_text())

    def _ends_with(self, ids: Sequence[int], mark: str) -> bool:
        return self.tokenizer.decode(ids[-PROMPT_END_LEN:]).rstrip().endswith(mark)

    def _opens_reasoning(self, prompt: ChatPrompt, ids: Sequence[int]) -> bool:
        """Return whether the prompt ends inside reasoning, so that the answer continues it."""
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
    """Load the text files of a model directory. ``parsers`` says how answers are parsed.

    ``checker`` compiles the grammars of requests in advance; without it, only the engine compiles them.

    Raises:
        ConfigError: a requested parser does not exist.
        ModelError: the directory is not a model; the tokenizer or ``generation_config.json`` is unusable.
        MemoryBudgetError: there is not enough memory.
    """
    # Imported late: the three tokenizer libraries take a tenth of the start, and only a model needs them.
    from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

    read_config(directory)  # first: a directory that is not a model must not fail with a missing tokenizer
    tokenizer = load_tokenizer(directory)
    template = _template(directory, tokenizer)
    stops = stop_token_ids(directory, tokenizer)
    if isinstance(template, ChatTemplate):
        stops += end_of_turn_ids(renderer, template, tokenizer)
    sources = template.sources.values() if isinstance(template, ChatTemplate) else ()
    formats = choose_formats(parsers, sources)
    stops += ids_of(formats.calls.ends if formats.calls else (), tokenizer)
    stop_ids = tuple(sorted(set(stops)))
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
    """Return the template, or the error for chat requests: a model without one still completes prompts."""
    try:
        return load_chat_template(directory, tokenizer)
    except TemplateError as error:
        return error
