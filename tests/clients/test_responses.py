"""The Responses API through OpenAI's client, over TCP and over the Unix socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.input_token_count_response import InputTokenCountResponse

from tests.clients.sse import events
from tests.clients.strict import check
from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon

FIELDS: dict[str, Any] = {"model": MODEL, "input": "Hello", "temperature": 0, "max_output_tokens": 12}


@pytest.fixture(params=["tcp", "unix"])
def base(request: pytest.FixtureRequest, daemon: RunningDaemon) -> tuple[str, str | None]:
    """Where the client is pointed at: a URL, and the socket where there is one."""
    return ("http://llmd/v1", str(daemon.socket)) if request.param == "unix" else (f"{daemon.url}/v1", None)


@pytest.fixture
def client(base: tuple[str, str | None]) -> Iterator[openai.OpenAI]:
    url, uds = base
    http = httpx2.Client(transport=httpx2.HTTPTransport(uds=uds))
    with openai.OpenAI(base_url=url, api_key="none", http_client=http, max_retries=0) as client:
        yield client


def test_answers_with_nothing_that_its_types_do_not_have(client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(**FIELDS, metadata={"a": "b"}, instructions="Be short.")
    response = check(Response, raw.text)
    assert (response.status, response.model, response.metadata) == ("incomplete", MODEL, {"a": "b"})
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 12
    assert response.output_text


def test_streams_the_same_response(client: openai.OpenAI) -> None:
    whole = client.responses.create(**FIELDS)
    with client.responses.stream(**FIELDS) as stream:
        found = list(stream)
    text = "".join(event.delta for event in found if event.type == "response.output_text.delta")
    assert text == whole.output_text
    assert found[-1].type == "response.incomplete"
    assert found[-1].response.output_text == whole.output_text


def test_a_response_that_ends_by_itself_is_completed(client: openai.OpenAI) -> None:
    text = client.responses.create(**FIELDS).output_text
    with client.responses.stream(**FIELDS, extra_body={"stop": text[4:6]}) as stream:
        final = stream.get_final_response()
    assert (final.status, final.output_text) == ("completed", text[: text.index(text[4:6])])


def test_every_event_is_one_that_its_types_have_in_their_order(daemon: RunningDaemon) -> None:
    found = events(send(daemon, "POST", "/v1/responses", {**FIELDS, "stream": True}).content)
    checked = [check(ResponseStreamEvent, event.data) for event in found]
    assert [event.sequence_number for event in checked] == list(range(len(checked)))
    kinds = [event.type.removeprefix("response.") for event in checked]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert set(kinds[4:-4]) == {"output_text.delta"}
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]


def test_keeps_shows_goes_on_from_and_forgets_a_response(client: openai.OpenAI) -> None:
    first = client.responses.create(**FIELDS, store=True)
    assert client.responses.retrieve(first.id) == first
    second = client.responses.create(**{**FIELDS, "input": "More"}, previous_response_id=first.id)
    assert second.previous_response_id == first.id
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_counts_the_tokens_that_a_response_uses(client: openai.OpenAI) -> None:
    raw = client.responses.input_tokens.with_raw_response.count(model=MODEL, input="Hello")
    counted = check(InputTokenCountResponse, raw.text)
    usage = client.responses.create(**FIELDS).usage
    assert usage is not None
    assert counted.input_tokens == usage.input_tokens


def test_errors_arrive_as_the_clients_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as long:
        client.responses.create(**{**FIELDS, "input": "x" * CONTEXT_LEN})
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**FIELDS, background=True)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "background")


async def test_asynchronous_client_streams(base: tuple[str, str | None]) -> None:
    url, uds = base
    http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=uds))
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=http, max_retries=0) as client:
        whole = await client.responses.create(**FIELDS)
        stream = await client.responses.create(**FIELDS, stream=True)
        pieces = [event.delta async for event in stream if event.type == "response.output_text.delta"]
    assert "".join(pieces) == whole.output_text
