"""Parses a request for a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from llmd.chat.answers.thinking import effort_budget
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.truncation import fit_messages, prompt_room
from llmd.requests.ending import read_end
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import read_sampling
from llmd.server.dialects.openai.fields import REFUSED as REFUSED_EVERYWHERE
from llmd.server.dialects.openai.fields import refuse
from llmd.server.dialects.openai.responses.fields import (
    REFUSED,
    Reasoning,
    read_logprobs,
    read_max_tokens,
    read_max_tool_calls,
    read_metadata,
    read_reasoning,
    read_text,
    read_truncation,
)
from llmd.server.dialects.openai.responses.input_items import given_items, read_items
from llmd.server.dialects.openai.responses.tools import Tools, read_tools
from llmd.server.generation.generation import GenerationRequest


class ResponsesInput(Struct, frozen=True):
    """The parsed prompt."""

    prompt: ChatPrompt
    items: list[Any]
    """The items of the whole conversation."""
    tools: Tools
    reasoning: Reasoning
    instructions: str | None
    ignored: tuple[str, ...]
    """Fields that were ignored."""


class ResponsesRequest(Struct, frozen=True):
    """A parsed request."""

    question: ResponsesInput
    template: GenerationRequest
    echo: dict[str, Any]
    """The fields that the response repeats."""
    ignored: tuple[str, ...]

    def request(self, text: ModelText, window: int) -> GenerationRequest:
        """Return the request to the engine. May block: call it in a thread.

        Raises:
            LlmdError: the conversation cannot be converted to a prompt.
        """
        prompt = self.question.prompt
        if self.echo["truncation"] == "disabled":
            return self.template.with_prompts((text.encode_chat(prompt),))

        def encode(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
            return text.encode_chat(structs.replace(prompt, messages=messages))

        fitted = fit_messages(encode, prompt.messages, prompt_room(window, self.template.end.max_tokens))
        cut = structs.replace(self.template, truncated_tokens=fitted.truncated_tokens)
        return cut.with_prompts((fitted.tokens,))


def read_input(fields: RequestFields, earlier: list[Any]) -> ResponsesInput:
    """Parse the prompt; it follows the items of an earlier response.

    Raises:
        RequestError: a part of it cannot be parsed.
    """
    items = [*earlier, *given_items(fields)]
    given = read_items(items)
    instructions = fields.text("instructions")
    head = [{"role": "system", "content": instructions}] if instructions else []
    tools = read_tools(fields, items)
    reasoning = read_reasoning(fields)
    messages = [*head, *given.messages]
    ends_open = messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1]
    prompt = ChatPrompt(
        messages,
        add_generation_prompt=not ends_open,
        continue_final_message=ends_open,
        variables=reasoning.variables,
        tools=tools.prompt_tools(),
        tool_choice=tools.choice,
        bindings=tools.bindings(),
        reasoning_budget=effort_budget(reasoning.effort),
    )
    ignored = given.skipped + tools.ignored + reasoning.ignored
    return ResponsesInput(prompt, items, tools, reasoning, instructions, ignored)


def read_request(fields: RequestFields, earlier: list[Any]) -> ResponsesRequest:
    """Parse all fields except the model and how the reply is sent.

    Raises:
        RequestError: a field cannot be parsed or supported.
    """
    question = read_input(fields, earlier)
    max_tokens, logprobs = read_max_tokens(fields), read_logprobs(fields)
    text, sampling = read_text(fields), read_sampling(fields, logprobs)
    template = GenerationRequest(
        prompts=(),
        sampling=sampling,
        end=read_end(fields, max_tokens),
        at_text_start=not question.prompt.continue_final_message,
        param="input",
        conversation=question.prompt,
        grammar=text.grammar,
        grammar_param="text.format",
    )
    echo = {
        "frequency_penalty": sampling.frequency_penalty,
        "instructions": question.instructions,
        "max_output_tokens": max_tokens,
        "max_tool_calls": read_max_tool_calls(fields),
        "metadata": read_metadata(fields),
        "parallel_tool_calls": question.tools.choice.parallel,
        "presence_penalty": sampling.presence_penalty,
        "previous_response_id": fields.text("previous_response_id"),
        "prompt_cache_key": fields.repeated("prompt_cache_key"),
        "reasoning": question.reasoning.echo(),
        "safety_identifier": fields.repeated("safety_identifier"),
        "store": fields.boolean("store"),
        "text": text.echo(),
        "tool_choice": question.tools.sent_choice,
        "tools": [tool.echo() for tool in question.tools.offered],
        "top_logprobs": logprobs or 0,
        "truncation": read_truncation(fields),
    }
    refuse(fields, {**REFUSED_EVERYWHERE, **REFUSED})
    return ResponsesRequest(question, template, echo, question.ignored + text.ignored)
