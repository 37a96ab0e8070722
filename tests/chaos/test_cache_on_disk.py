"""A model that is unloaded when it is idle finds its cached prompts on the disk when it is loaded again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.pager.states import SNAPSHOT_LEN
from llmd.registry.spools import Spools
from tests.golden.models.hybrids import qwen3_5_moe
from tests.golden.models.indexers import glm_moe_dsa
from tests.golden.models.llama import llama
from tests.serving.http import chat
from tests.serving.model import write_model
from tests.serving.running import RunningDaemon, directories_below, running_daemon

LIMIT_S = 20.0
WORDS = {
    "messages": [{"role": "user", "content": "Why is the sky blue, and the sea? " * 9}],
    "max_tokens": 12,
}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answer(daemon: RunningDaemon) -> tuple[int, Any]:
    """Cached tokens, and the answer with its log-probabilities; the model is unloaded afterwards."""
    reply = chat(daemon, model="one", logprobs=True, seed=7, **WORDS)
    assert reply.status == 200, reply.content
    return reply.json["usage"]["prompt_tokens_details"]["cached_tokens"], reply.json["choices"]


@pytest.mark.parametrize(
    ("family", "device", "kv_dtype"),
    [
        (llama, "reference", "int8"),
        (llama, "cpu", "int8"),
        (qwen3_5_moe, "cpu", "int8"),
        (glm_moe_dsa, "cpu", "f16"),
    ],
)
def test_an_answer_after_an_idle_unload_is_the_same_with_cached_tokens(
    tmp_path: Path, family: Callable[..., dict[str, Any]], device: str, kv_dtype: str
) -> None:
    directories = directories_below(tmp_path)
    model = write_model(directories.models / "one", family=family)
    spool = Spools(directories.cache).path(model)
    with running_daemon(directories, models=(), keep_alive=0.0, device=device, kv_dtype=kv_dtype) as daemon:
        cached, first = answer(daemon)
        assert cached == 0
        until(spool.exists)
        cached, second = answer(daemon)
        assert cached >= SNAPSHOT_LEN
        assert second == first


def test_an_idle_model_that_was_told_to_stop_keeps_nothing(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    model = write_model(directories.models / "one")
    with running_daemon(directories, models=()) as daemon:
        answer(daemon)
        daemon.client().stop("one")
        until(lambda: not daemon.client().ps())
    assert not Spools(directories.cache).path(model).exists()
