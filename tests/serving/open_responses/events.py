"""Events of a stream."""

from __future__ import annotations

from tests.serving.open_responses.content import Logprob, OutputText, SummaryText
from tests.serving.open_responses.items import Item
from tests.serving.open_responses.response import Response
from tests.serving.open_responses.shape import Shape, TypedShape


class StreamEvent(TypedShape, frozen=True, kw_only=True):
    sequence_number: int


class ResponseEvent(StreamEvent, frozen=True):
    response: Response


class Created(ResponseEvent, frozen=True, tag="response.created"):
    pass


class InProgress(ResponseEvent, frozen=True, tag="response.in_progress"):
    pass


class Completed(ResponseEvent, frozen=True, tag="response.completed"):
    pass


class Incomplete(ResponseEvent, frozen=True, tag="response.incomplete"):
    pass


class Failed(ResponseEvent, frozen=True, tag="response.failed"):
    pass


class ItemEvent(StreamEvent, frozen=True):
    output_index: int
    item: Item


class ItemAdded(ItemEvent, frozen=True, tag="response.output_item.added"):
    pass


class ItemDone(ItemEvent, frozen=True, tag="response.output_item.done"):
    pass


class ContentEvent(StreamEvent, frozen=True):
    item_id: str
    output_index: int
    content_index: int


class PartAdded(ContentEvent, frozen=True, tag="response.content_part.added"):
    part: OutputText


class PartDone(ContentEvent, frozen=True, tag="response.content_part.done"):
    part: OutputText


class TextDelta(ContentEvent, frozen=True, tag="response.output_text.delta"):
    delta: str
    logprobs: list[Logprob]


class TextDone(ContentEvent, frozen=True, tag="response.output_text.done"):
    text: str
    logprobs: list[Logprob]


class ReasoningDelta(ContentEvent, frozen=True, tag="response.reasoning_text.delta"):
    """OpenAI's own: the specification calls it ``response.reasoning.delta``,
    which OpenAI's clients do not know.
    """

    delta: str


class ReasoningDone(ContentEvent, frozen=True, tag="response.reasoning_text.done"):
    """OpenAI's own, as `ReasoningDelta`."""

    text: str


class SummaryEvent(StreamEvent, frozen=True):
    item_id: str
    output_index: int
    summary_index: int


class SummaryPartAdded(SummaryEvent, frozen=True, tag="response.reasoning_summary_part.added"):
    part: SummaryText


class SummaryPartDone(SummaryEvent, frozen=True, tag="response.reasoning_summary_part.done"):
    part: SummaryText


class SummaryDelta(SummaryEvent, frozen=True, tag="response.reasoning_summary_text.delta"):
    delta: str


class SummaryDone(SummaryEvent, frozen=True, tag="response.reasoning_summary_text.done"):
    text: str


class CallEvent(StreamEvent, frozen=True):
    item_id: str
    output_index: int


class ArgumentsDelta(CallEvent, frozen=True, tag="response.function_call_arguments.delta"):
    delta: str


class ArgumentsDone(CallEvent, frozen=True, tag="response.function_call_arguments.done"):
    arguments: str


class InputDelta(CallEvent, frozen=True, tag="response.custom_tool_call_input.delta"):
    """OpenAI's own, of a custom tool."""

    delta: str


class InputDone(CallEvent, frozen=True, tag="response.custom_tool_call_input.done"):
    """OpenAI's own, of a custom tool."""

    input: str


class ErrorFields(Shape, frozen=True):
    type: str
    code: str | None
    message: str
    param: str | None


class Error(StreamEvent, frozen=True, tag="error"):
    """``code``, ``message`` and ``param`` of the event itself are OpenAI's own."""

    error: ErrorFields
    code: str | None
    message: str
    param: str | None


Event = (
    Created
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | ReasoningDelta
    | ReasoningDone
    | SummaryPartAdded
    | SummaryPartDone
    | SummaryDelta
    | SummaryDone
    | ArgumentsDelta
    | ArgumentsDone
    | InputDelta
    | InputDone
    | Error
)
