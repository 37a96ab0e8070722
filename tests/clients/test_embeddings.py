"""Vectors through the official clients of OpenAI and Ollama, for Python and for Node."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator

import httpx
import numpy as np
import ollama
import openai
import pytest
from openai.types import CreateEmbeddingResponse

from tests.clients.strict import check
from tests.clients.test_node import run
from tests.serving.http import send
from tests.serving.model import write_embedding_model, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

TEXTS = ["Hello", "Good day", "Hello"]
GENERATOR = "generator"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("embeddings"))
    write_embedding_model(directories.models / MODEL)
    write_model(directories.models / GENERATOR)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture
def ollama_client(base: tuple[str, str | None]) -> Iterator[ollama.Client]:
    url, uds = base
    with ollama.Client(host=url, transport=httpx.HTTPTransport(uds=uds)) as client:
        yield client


def test_openais_client_reads_numbers_from_base64(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model=MODEL, input=TEXTS)
    plain = client.embeddings.create(model=MODEL, input=TEXTS, encoding_format="float")
    assert [row.embedding for row in answer.data] == [row.embedding for row in plain.data]
    assert [row.index for row in answer.data] == [0, 1, 2]
    assert answer.data[0].embedding == answer.data[2].embedding != answer.data[1].embedding
    assert math.isclose(math.hypot(*answer.data[1].embedding), 1, rel_tol=1e-5)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == 6 + 9 + 6


async def test_openais_client_waits_for_several_at_once(async_client: openai.AsyncOpenAI) -> None:
    answer = await async_client.embeddings.create(model=MODEL, input=[[72, 101], [72]], dimensions=16)
    assert [len(row.embedding) for row in answer.data] == [16, 16]


def test_answers_with_nothing_that_openais_types_do_not_have(client: openai.OpenAI) -> None:
    raw = client.embeddings.with_raw_response.create(model=MODEL, input="Hello", encoding_format="float")
    check(CreateEmbeddingResponse, raw.text)
    encoded = client.embeddings.with_raw_response.create(model=MODEL, input="Hello", encoding_format="base64")
    vector = encoded.http_response.json()["data"][0]["embedding"]
    assert len(base64.b64decode(vector, validate=True)) == 4 * 64


def test_errors_arrive_as_openais_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot generate") as chatted:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}])
    assert (chatted.value.code, chatted.value.param) == ("unsupported_model", "model")
    with pytest.raises(openai.BadRequestError, match="cannot embed"):
        client.embeddings.create(model=GENERATOR, input="Hello")
    with pytest.raises(openai.BadRequestError) as long:
        client.embeddings.create(model=MODEL, input="x" * 600)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model=MODEL, input="")


def test_ollamas_client_embeds(ollama_client: ollama.Client, daemon: RunningDaemon) -> None:
    answer = ollama_client.embed(MODEL, TEXTS, dimensions=16, truncate=True, keep_alive="5m")
    assert [len(row) for row in answer.embeddings] == [16] * 3
    assert answer.prompt_eval_count == 21
    assert answer.total_duration is not None
    one = ollama_client.embeddings(MODEL, "Hello")
    assert list(one.embedding) == list(ollama_client.embed(MODEL, "Hello").embeddings[0])
    raw = send(daemon, "POST", "/api/embed", {"model": MODEL, "input": TEXTS})
    check(ollama.EmbedResponse, raw.content)
    check(
        ollama.EmbeddingsResponse,
        send(daemon, "POST", "/api/embeddings", {"model": MODEL, "prompt": "a"}).content,
    )
    assert ollama_client.show(MODEL).capabilities == ["embedding"]
    with pytest.raises(ollama.ResponseError, match="num_ctx"):
        ollama_client.embed(MODEL, "x" * 600, truncate=False)


@pytest.mark.timeout(90)
def test_clients_on_node_embed(daemon: RunningDaemon) -> None:
    found = run("embed.mjs", daemon)
    expected = found["ollama"]["embeddings"]
    assert [len(row) for row in expected] == [64] * 3
    assert found["older"]["embedding"] == expected[0]
    for provider in ("openai", "compatible"):
        np.testing.assert_allclose(found[provider]["many"], expected, rtol=1e-6)
        assert found[provider]["one"] == found[provider]["many"][0]
        assert found[provider]["usage"]["tokens"] == 21
