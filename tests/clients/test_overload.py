"""OpenAI's and Anthropic's clients and a daemon that is full, late, or both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam

from llmd.config.keys import KeyFile
from tests.serving.engine_state import asked, wait_until
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

CONTEXT_LEN = 1 << 15
LONG = {"max_tokens": CONTEXT_LEN, "ignore_eos": True}
IGNORE_EOS = {"ignore_eos": True, "max_tokens": CONTEXT_LEN - 16}
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One slot, taken for as long as the tests last, and no queue."""
    directories = directories_below(tmp_path_factory.mktemp("full"))
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    with running_daemon(directories, slots=1, max_queue=0) as running, asked(running, LONG):
        wait_until(running, running=1)
        yield running


@pytest.mark.parametrize("stream", [False, True])
def test_full_queue_is_a_server_error_with_its_delay(full: RunningDaemon, *, stream: bool) -> None:
    with (
        openai.OpenAI(base_url=f"{full.url}/v1", api_key="none", max_retries=0) as client,
        pytest.raises(openai.InternalServerError) as caught,
    ):
        client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (503, "queue_full")
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60


def test_full_queue_is_an_overloaded_error_to_anthropics_client(full: RunningDaemon) -> None:
    hello: list[MessageParam] = [{"role": "user", "content": "Hello"}]
    with (
        anthropic.Anthropic(base_url=full.url, api_key="none", max_retries=0) as client,
        pytest.raises(anthropic.OverloadedError) as caught,
    ):
        client.messages.create(model=MODEL, messages=hello, max_tokens=1)
    assert caught.value.status_code == 529
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60


def test_key_that_has_its_share_is_rate_limited_and_others_are_served(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    keys = {name: KeyFile(directories.keys).add(name) for name in ("ann", "bob")}
    with running_daemon(directories, require_key=True, max_queue_per_key=1) as daemon:
        ann, bob = (
            openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=key, max_retries=0) for key in keys.values()
        )
        with ann, bob:
            running = ann.completions.create(model=MODEL, prompt="Hello", stream=True, extra_body=IGNORE_EOS)
            next(running)
            with pytest.raises(openai.RateLimitError) as caught:
                ann.completions.create(model=MODEL, prompt="Hello")
            assert (caught.value.status_code, caught.value.code) == (429, "key_limit")
            assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
            assert bob.completions.create(model=MODEL, prompt="Hello", max_tokens=1).choices


def test_client_comes_back_when_it_is_told_to(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    with (
        running_daemon(directories, slots=1, max_queue=0) as daemon,
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=2) as client,
    ):
        with asked(daemon, LONG):
            wait_until(daemon, running=1)
            with pytest.raises(openai.InternalServerError):
                client.with_options(max_retries=0).chat.completions.create(model=MODEL, messages=HELLO)
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=3)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3
