from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError, TokenizerError
from llmd.api.messages import Load
from llmd.chat.model_text import ModelText
from llmd.server.engines.engine_child import engine_command
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.supervisor import Supervisor
from llmd.server.models.model_leases import ModelLeases
from llmd.server.models.served_model import ServedModel
from tests.serving.model import CONTEXT_LEN


@asynccontextmanager
async def served(
    directory: Path, probes: Path, text: Callable[[], ModelText], *, kv_memory: int = 64 << 20
) -> AsyncIterator[ServedModel]:
    load = Load(str(directory), device="reference", kv_dtype="f32", kv_memory=kv_memory)
    supervisor = Supervisor("tiny", load, EngineStarter(engine_command(probes)))
    future = asyncio.get_running_loop().run_in_executor(None, text)
    model = ServedModel("tiny", directory, supervisor, future, leases())
    try:
        yield model
    finally:
        await model.close()


def leases() -> ModelLeases:
    return ModelLeases(-1, lambda: None, on_idle=lambda: None)


def damaged() -> ModelText:
    raise TokenizerError("the tokenizer is damaged")


async def test_is_ready_with_engine_text_and_window(
    model_directory: Path, probes: Path, text: ModelText
) -> None:
    async with served(model_directory, probes, lambda: text) as model:
        assert model.status == "loading"
        ready = await model.ready()
        assert (model.status, model.error, model.never_loaded) == ("loaded", None, False)
        assert ready.window == CONTEXT_LEN
        assert ready.text is text


async def test_window_is_what_the_kv_pool_holds(model_directory: Path, probes: Path, text: ModelText) -> None:
    async with served(model_directory, probes, lambda: text, kv_memory=64 << 10) as model:
        ready = await model.ready()
        assert ready.window == ready.loaded.kv_tokens
        assert ready.window < CONTEXT_LEN


async def test_text_that_cannot_be_read_fails_the_model(model_directory: Path, probes: Path) -> None:
    async with served(model_directory, probes, damaged) as model:
        with pytest.raises(TokenizerError):
            await model.ready()
        assert isinstance(model.error, TokenizerError)
        assert (model.status, model.never_loaded) == ("failed", True)


async def test_engine_that_cannot_load_fails_the_model(tmp_path: Path, probes: Path, text: ModelText) -> None:
    async with served(tmp_path, probes, lambda: text) as model:
        with pytest.raises(CheckpointError):
            await model.ready()
        assert (model.status, model.never_loaded) == ("failed", True)


async def test_one_client_that_leaves_does_not_end_the_loading(
    model_directory: Path, probes: Path, text: ModelText
) -> None:
    release = asyncio.get_running_loop().create_future()
    load = Load(str(model_directory), device="reference", kv_memory=64 << 20)
    supervisor = Supervisor("tiny", load, EngineStarter(engine_command(probes)))
    model = ServedModel("tiny", model_directory, supervisor, release, leases())
    leaving = asyncio.Task(model.ready(), name="client that leaves")
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait({leaving})
    release.set_result(text)
    assert (await model.ready()).text is text
    await model.close()


async def test_model_whose_engine_is_started_again_is_loading_meanwhile(
    model_directory: Path, probes: Path, text: ModelText
) -> None:
    restarting, release = asyncio.Event(), asyncio.Event()

    async def hold_the_restart(_delay_s: float) -> None:
        if supervisor.restarts:
            restarting.set()
            await release.wait()

    load = Load(str(model_directory), device="reference", kv_memory=64 << 20)
    supervisor = Supervisor("tiny", load, EngineStarter(engine_command(probes)), sleep=hold_the_restart)
    future = asyncio.get_running_loop().run_in_executor(None, lambda: text)
    model = ServedModel("tiny", model_directory, supervisor, future, leases())
    await model.ready()
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    await restarting.wait()
    assert model.status == "loading"
    assert model.loaded is not None
    release.set()
    await model.close()
