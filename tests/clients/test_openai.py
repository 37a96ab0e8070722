"""The official client of OpenAI, over TCP and over the Unix socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import openai
import pytest

from tests.serving.running import MODEL, RunningDaemon

MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.fixture(params=["tcp", "unix"])
def client(request: pytest.FixtureRequest, daemon: RunningDaemon) -> Iterator[openai.OpenAI]:
    if request.param == "tcp":
        transport, base = httpx2.HTTPTransport(), daemon.url
    else:
        transport, base = httpx2.HTTPTransport(uds=str(daemon.socket)), "http://llmd"
    with (
        httpx2.Client(transport=transport) as http,
        openai.OpenAI(base_url=f"{base}/v1", api_key="none", http_client=http, max_retries=0) as client,
    ):
        yield client


def test_chats_whole_and_streamed_with_the_same_text(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=12, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=MESSAGES,
            max_tokens=12,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage
    assert whole.usage.completion_tokens == 12
