"""The official client of Ollama for Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import jsonschema
import ollama
import pytest

from tests.serving.model import CONTEXT_LEN, TEMPLATE, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

HELLO = [{"role": "user", "content": "Hello"}]
TRY_PULLING = "model 'nobody' not found, try pulling it first"
OPTIONS = {"temperature": 0, "num_predict": 12}


@pytest.fixture(params=["tcp", "unix"])
def client(request: pytest.FixtureRequest, daemon: RunningDaemon) -> Iterator[ollama.Client]:
    if request.param == "unix":
        transport = httpx.HTTPTransport(uds=str(daemon.socket))
        client = ollama.Client(host="http://llmd", transport=transport)
    else:
        client = ollama.Client(host=daemon.url)
    with client:
        yield client


def test_lists_and_shows_models(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert model.model == MODEL
    assert model.details is not None
    assert model.details.family == "llama"
    assert model.modified_at is not None
    shown = client.show(MODEL)
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == CONTEXT_LEN
    assert shown.template == TEMPLATE
    assert shown.capabilities == ["completion", "tools"]


def test_tells_what_is_loaded(client: ollama.Client) -> None:
    (model,) = client.ps().models
    assert (model.model, model.context_length, model.size_vram) == (MODEL, CONTEXT_LEN, 0)
    assert model.expires_at is not None


def test_chats(client: ollama.Client) -> None:
    answer = client.chat(MODEL, messages=HELLO, options=OPTIONS)
    assert answer.message.role == "assistant"
    assert (answer.done, answer.done_reason, answer.eval_count) == (True, "length", 12)
    assert answer.total_duration is not None
    assert answer.eval_duration is not None
    assert answer.total_duration >= answer.eval_duration > 0


def test_streams_the_same_chat(client: ollama.Client) -> None:
    whole = client.chat(MODEL, messages=HELLO, options=OPTIONS)
    parts = list(client.chat(MODEL, messages=HELLO, options=OPTIONS, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == 12


def test_generates_whole_streamed_and_on_from_a_context(client: ollama.Client) -> None:
    whole = client.generate(MODEL, "Hello", options=OPTIONS)
    parts = list(client.generate(MODEL, "Hello", options=OPTIONS, stream=True))
    assert "".join(part.response or "" for part in parts) == whole.response
    assert whole.context is not None
    assert parts[-1].context == whole.context
    on = client.generate(MODEL, "More", context=whole.context, options=OPTIONS)
    assert on.prompt_eval_count is not None
    assert on.prompt_eval_count > len(whole.context)


def test_tokens_come_with_their_logprobs(client: ollama.Client) -> None:
    answer = client.chat(MODEL, messages=HELLO, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 12
    first = answer.logprobs[0]
    assert first.top_logprobs is not None
    assert next(other.token for other in first.top_logprobs) == first.token


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ollama.Client]:
    """A model that thinks first, and whose window holds the description of tools."""
    directories = directories_below(tmp_path_factory.mktemp("thinker"))
    model = write_model(directories.models / MODEL, context_len=2048)
    opened = "{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}"
    history = TEMPLATE.replace("m.content", "m.content.split('</think>')[-1]")
    (model / "chat_template.jinja").write_text(history + opened)
    with running_daemon(directories) as daemon, ollama.Client(host=daemon.url) as client:
        yield client


def test_tools_can_be_offered_as_functions_and_their_answers_given(thinker: ollama.Client) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
          a: one of them
          b: the other
        """
        return a + b

    history: list[dict[str, Any]] = [
        *HELLO,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}],
        },
        {"role": "tool", "content": "3", "tool_name": "add"},
    ]
    without = thinker.chat(MODEL, messages=HELLO, options=OPTIONS)
    answer = thinker.chat(MODEL, messages=history, tools=[add], options=OPTIONS)
    assert answer.eval_count == 12
    assert answer.prompt_eval_count is not None
    assert without.prompt_eval_count is not None
    assert answer.prompt_eval_count > without.prompt_eval_count + 100


def test_thinking_stands_beside_the_answer_and_can_be_turned_off(thinker: ollama.Client) -> None:
    thought = thinker.chat(MODEL, messages=HELLO, options=OPTIONS, think=True)
    assert thought.message.content == ""
    assert thought.message.thinking
    parts = list(thinker.chat(MODEL, messages=HELLO, options=OPTIONS, think=True, stream=True))
    assert "".join(part.message.thinking or "" for part in parts) == thought.message.thinking
    plain = thinker.chat(MODEL, messages=HELLO, options=OPTIONS, think=False)
    assert plain.message.thinking is None
    assert plain.message.content
    assert thinker.generate(MODEL, "Hello", options=OPTIONS, think=True).thinking == thought.message.thinking
    capabilities = thinker.show(MODEL).capabilities
    assert capabilities is not None
    assert "thinking" in capabilities


SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Oslo", "Rome"]}, "big": {"type": "boolean"}},
    "required": ["name", "big"],
    "additionalProperties": False,
}


def test_answers_keep_to_a_schema_and_to_json(client: ollama.Client) -> None:
    options = {"temperature": 1.5, "seed": 3, "num_predict": 300}
    answer = client.chat(MODEL, messages=HELLO, format=SCHEMA, options=options)
    assert answer.done_reason == "stop"
    jsonschema.validate(json.loads(answer.message.content or ""), SCHEMA)
    generated = client.generate(MODEL, "Hello", format=SCHEMA, options=options)
    jsonschema.validate(json.loads(generated.response or ""), SCHEMA)
    begun = client.generate(MODEL, "Hello", format="json", options=OPTIONS).response or ""
    assert begun.lstrip()[0] == "{"
    with pytest.raises(ollama.ResponseError) as refused:
        client.chat(MODEL, messages=HELLO, format={"type": "array", "uniqueItems": True})
    assert refused.value.status_code == 400
    assert "uniqueItems at #" in refused.value.error


def test_schema_holds_from_the_first_sign_where_thinking_is_off(thinker: ollama.Client) -> None:
    answer = thinker.chat(
        MODEL, messages=HELLO, format=SCHEMA, think=False, options={"temperature": 0, "num_predict": 300}
    )
    jsonschema.validate(json.loads(answer.message.content or ""), SCHEMA)


def test_loads_and_keeps_a_model(client: ollama.Client) -> None:
    answer = client.generate(MODEL, keep_alive=-1)
    assert (answer.done, answer.done_reason) == (True, "load")
    (model,) = client.ps().models
    assert model.expires_at is not None
    assert model.expires_at.year == 2318


def test_creates_copies_and_deletes_models(client: ollama.Client) -> None:
    steps = [step.status for step in client.create("mario", from_=MODEL, system="Be Mario.", stream=True)]
    assert steps[-1] == "success"
    assert client.create("mario", from_=MODEL, parameters={"num_predict": 3}).status == "success"
    assert client.chat("mario", messages=HELLO, options={"temperature": 0}).eval_count == 3
    assert client.copy("mario", "luigi").status == "success"
    assert {model.model for model in client.list().models} == {MODEL, "mario", "luigi"}
    for name in ("mario", "luigi"):
        assert client.delete(name).status == "success"
    with pytest.raises(ollama.ResponseError) as missing:
        client.delete("mario")
    assert missing.value.status_code == 404


def test_asynchronous_client_streams(daemon: RunningDaemon) -> None:
    async def ask() -> tuple[str, str]:
        async with ollama.AsyncClient(host=daemon.url) as client:
            whole = await client.chat(MODEL, messages=HELLO, options=OPTIONS)
            stream = await client.chat(MODEL, messages=HELLO, options=OPTIONS, stream=True)
            pieces = [part.message.content or "" async for part in stream]
        return whole.message.content or "", "".join(pieces)

    whole, streamed = asyncio.run(ask())
    assert whole == streamed


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda client: client.generate("nobody", "Hi"), TRY_PULLING),
        (lambda client: list(client.generate("nobody", "Hi", stream=True)), TRY_PULLING),
        (lambda client: client.generate("nobody"), TRY_PULLING),
        (lambda client: client.generate("nobody", keep_alive=0), TRY_PULLING),
        (lambda client: client.chat("nobody", messages=HELLO), TRY_PULLING),
        (lambda client: list(client.chat("nobody", messages=HELLO, stream=True)), TRY_PULLING),
        (lambda client: client.chat("nobody", messages=[]), TRY_PULLING),
        (lambda client: client.embed("nobody", "Hi"), TRY_PULLING),
        (lambda client: client.embed("nobody", ""), TRY_PULLING),
        (lambda client: client.embeddings("nobody", "Hi"), TRY_PULLING),
        (lambda client: client.show("nobody"), "model 'nobody' not found"),
        (lambda client: client.delete("nobody"), "model 'nobody' not found"),
        (lambda client: client.copy("nobody", "somebody"), 'model "nobody" not found'),
    ],
)
def test_a_missing_model_gets_ollamas_own_error(
    ask: Callable[[ollama.Client], object], expected: str, client: ollama.Client
) -> None:
    with pytest.raises(ollama.ResponseError) as missing:
        ask(client)
    assert (missing.value.status_code, missing.value.error) == (404, expected)


def test_errors_arrive_as_the_clients_own(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="num_ctx"):
        list(client.generate(MODEL, "x" * CONTEXT_LEN, stream=True))
    with pytest.raises(ollama.ResponseError) as refused:
        client.embed(MODEL, "text")
    assert refused.value.status_code == 400
    assert "cannot embed" in refused.value.error
