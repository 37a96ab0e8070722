"""OpenAI's client and a daemon that is full, late, or both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.serving.engine_state import asked, wait_until
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

CONTEXT_LEN = 1 << 15
LONG = {"max_tokens": CONTEXT_LEN, "ignore_eos": True}
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
def test_full_queue_is_a_rate_limit_error_with_its_delay(full: RunningDaemon, *, stream: bool) -> None:
    with (
        openai.OpenAI(base_url=f"{full.url}/v1", api_key="none", max_retries=0) as client,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)
    assert caught.value.code == "queue_full"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60


def test_client_comes_back_when_it_is_told_to(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    with (
        running_daemon(directories, slots=1, max_queue=0) as daemon,
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=2) as client,
    ):
        with asked(daemon, LONG):
            wait_until(daemon, running=1)
            with pytest.raises(openai.RateLimitError):
                client.with_options(max_retries=0).chat.completions.create(model=MODEL, messages=HELLO)
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=3)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3
