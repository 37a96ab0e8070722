"""A daemon for the clients of others."""

from __future__ import annotations

from collections.abc import Iterator

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
    """A daemon for programs that work by themselves: reasoning told apart, a long window, the names that they ask for.

    Its other model does not think.
    """
    directories = directories_below(tmp_path_factory.mktemp("agents"))
    write_thinker(directories.models / MODEL, context_len=AGENT_CONTEXT_LEN)
    write_model(directories.models / THOUGHTLESS, context_len=4096)
    aliases = {"claude-*": MODEL, "gpt-*": MODEL}
    with running_daemon(directories, aliases=aliases, device="cpu", kv_memory=512 << 20) as running:
        yield running
