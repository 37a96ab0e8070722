"""A daemon for the clients of others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx2
import openai
import pytest

from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon
from tests.serving.script import write_thinker

AGENT_CONTEXT_LEN = 32768
THOUGHTLESS = "thoughtless"


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("clients"))
    write_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon for programs that work by themselves:
    reasoning told apart, a long window, the names that they ask for.

    Its other model does not think.
    """
    directories = directories_below(tmp_path_factory.mktemp("agents"))
    write_thinker(directories.models / MODEL, context_len=AGENT_CONTEXT_LEN)
    write_model(directories.models / THOUGHTLESS, context_len=4096)
    aliases = {"claude-*": MODEL, "gpt-*": MODEL}
    with running_daemon(directories, aliases=aliases, device="cpu", kv_memory=512 << 20) as running:
        yield running


@pytest.fixture(params=["tcp", "unix"])
def base(request: pytest.FixtureRequest, daemon: RunningDaemon) -> tuple[str, str | None]:
    """Where clients are pointed at: a URL, and the socket where there is one."""
    return ("http://llmd", str(daemon.socket)) if request.param == "unix" else (daemon.url, None)


@pytest.fixture
def client(base: tuple[str, str | None]) -> Iterator[openai.OpenAI]:
    url, uds = base
    http = httpx2.Client(transport=httpx2.HTTPTransport(uds=uds))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http, max_retries=0) as client:
        yield client


@pytest.fixture
async def async_client(base: tuple[str, str | None]) -> AsyncIterator[openai.AsyncOpenAI]:
    url, uds = base
    http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=uds))
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key="none", http_client=http, max_retries=0
    ) as client:
        yield client
