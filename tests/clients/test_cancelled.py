"""What other clients make of a request that is cancelled at the daemon: they raise its reason and stop."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import anthropic
import ollama
import openai
import pytest

from tests.serving.engine_state import wait_until
from tests.serving.http import send
from tests.serving.model import ENDLESS_TEMPLATE, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

CONTEXT_LEN = 1 << 15
ID = {"x-request-id": "unwanted"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("cancelled"))
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN, template=ENDLESS_TEMPLATE, eos_id=None)
    with running_daemon(directories) as running:
        yield running


def cancel(daemon: RunningDaemon) -> None:
    assert send(daemon, "POST", "/llmd/cancel", {"request_id": "unwanted"}).status == 200


def test_a_stream_of_openai_raises_the_reason(daemon: RunningDaemon) -> None:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=2) as client:
        stream = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Hello"}],
            stream=True,
            extra_headers=ID,
            extra_body={"max_tokens": CONTEXT_LEN - 100},
        )
        next(stream)
        cancel(daemon)
        with pytest.raises(openai.APIError, match="cancelled") as caught:
            list(stream)
    assert caught.value.code == "request_cancelled"


def test_an_answer_of_openai_raises_the_reason_and_is_not_asked_for_again(daemon: RunningDaemon) -> None:
    def cancel_when_it_runs() -> None:
        wait_until(daemon, running=1)
        cancel(daemon)

    with (
        ThreadPoolExecutor(1) as threads,
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none") as client,
    ):
        cancelling = threads.submit(cancel_when_it_runs)
        with pytest.raises(openai.APIStatusError) as caught:
            client.completions.create(
                model=MODEL,
                prompt="Hello",
                max_tokens=CONTEXT_LEN - 100,
                extra_headers=ID,
            )
        cancelling.result()
    assert (caught.value.status_code, caught.value.code) == (499, "request_cancelled")
    wait_until(daemon, running=0, waiting=0)


def test_a_stream_of_anthropic_raises_the_reason(daemon: RunningDaemon) -> None:
    with anthropic.Anthropic(base_url=daemon.url, api_key="none") as client:
        stream = client.messages.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Hello"}],
            max_tokens=CONTEXT_LEN - 100,
            stream=True,
            extra_headers=ID,
        )
        next(stream)
        cancel(daemon)
        with pytest.raises(anthropic.APIError, match="cancelled"):
            list(stream)


def test_a_stream_of_ollama_raises_the_reason(daemon: RunningDaemon) -> None:
    client = ollama.Client(daemon.url, headers=ID)
    options = {"num_predict": CONTEXT_LEN - 100, "num_ctx": CONTEXT_LEN}
    stream = client.generate(MODEL, "Hello", stream=True, options=options)
    next(iter(stream))
    cancel(daemon)
    with pytest.raises(ollama.ResponseError, match="cancelled"):
        list(stream)
