"""A full measurement of a real daemon with the tiny model."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from aiohttp import web
from msgspec import structs

from llmd.api.errors import NotFoundError
from llmd.benchmark.arrivals import Traffic
from llmd.benchmark.client import ServedName
from llmd.benchmark.data_set import RandomData
from llmd.benchmark.measurement import Plan, counted, find_tokenizer, measure
from llmd.benchmark.random_prompts import RandomShape
from llmd.benchmark.target import CHAT, Target
from llmd.benchmark.timeline import Outcome
from llmd.registry.store import Store
from tests.serving.other_server import served
from tests.serving.running import MODEL, RunningDaemon

SHORT = RandomData(RandomShape(20, 8, 0.25), as_token_ids=True)
PLAN = Plan(data=SHORT, num_prompts=6, traffic=Traffic(max_concurrency=3), fields={"ignore_eos": True})


@pytest.fixture(scope="module")
def store(daemon: RunningDaemon) -> Store:
    return Store(daemon.directories.models, {})


@pytest.fixture(scope="module")
def target(daemon: RunningDaemon) -> Target:
    return Target.parse(daemon.url)


async def test_every_request_has_the_lengths_of_its_sample(target: Target, store: Store) -> None:
    told: list[Outcome] = []
    head, run = await measure(PLAN, target, store, told.append)
    _, tokenizer = find_tokenizer(MODEL, ServedName(MODEL, MODEL), store)
    samples = SHORT.samples(tokenizer, 6, 0)
    assert [outcome.error for outcome in run.outcomes] == [""] * 6
    assert [(outcome.prompt_len, outcome.output_len) for outcome in run.outcomes] == [
        (sample.prompt_len, sample.output_len) for sample in samples
    ]
    assert (head.model_id, head.backend, head.num_prompts) == (MODEL, "openai", 6)
    assert len(told) == 6
    assert run.is_whole
    assert run.cpu_s > 0
    assert all(0 < outcome.ttft_s <= outcome.latency_s for outcome in run.outcomes)


async def test_warm_ups_are_not_counted_and_have_prompts_of_their_own(store: Store, tmp_path: Path) -> None:
    prompts: list[list[int]] = []

    async def keep(request: web.Request) -> web.Response:
        if request.method == "POST":
            prompts.append((await request.json())["prompt"])
        return web.Response(status=503)

    plan = structs.replace(PLAN, num_warmups=3, num_prompts=3, model="any", tokenizer=MODEL)
    async with served(web.UnixSite, keep, path=str(tmp_path / "s")):
        _, run = await measure(plan, Target.parse(f"unix:{tmp_path}/s"), store)
    assert [outcome.error for outcome in run.outcomes] == ["503"] * 3
    assert len({tuple(prompt) for prompt in prompts}) == 3 + 3


async def test_a_chat_is_measured_with_text(target: Target, store: Store) -> None:
    data = RandomData(RandomShape(20, 8))
    _, run = await measure(structs.replace(PLAN, backend=CHAT, data=data, num_prompts=2), target, store)
    assert [outcome.error for outcome in run.outcomes] == ["", ""]
    assert {outcome.output_len for outcome in run.outcomes} == {8}
    assert min(outcome.prompt_len for outcome in run.outcomes) > 20  # the template adds tokens


async def test_requests_that_fail_are_outcomes_too(target: Target, store: Store) -> None:
    data = RandomData(RandomShape(600, 8))  # the context window is 512
    _, run = await measure(structs.replace(PLAN, data=data, num_prompts=2), target, store)
    assert all("512" in outcome.error for outcome in run.outcomes)


async def test_sigint_ends_the_load_and_keeps_what_there_is(target: Target, store: Store) -> None:
    def interrupt(_: Outcome) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    plan = structs.replace(PLAN, num_prompts=40, traffic=Traffic(max_concurrency=1))
    before = signal.getsignal(signal.SIGINT)
    _, run = await measure(plan, target, store, interrupt)
    assert 1 <= len(run.outcomes) < 40
    assert not run.is_whole
    assert signal.getsignal(signal.SIGINT) is before
    await asyncio.sleep(0)


def test_the_tokenizer_is_the_one_that_was_named_or_that_of_the_model(
    daemon: RunningDaemon, store: Store
) -> None:
    root = str(daemon.directories.models / MODEL)
    assert find_tokenizer(None, ServedName("x", root), store)[0] == root
    assert find_tokenizer(None, ServedName(MODEL, "org/unknown"), store)[0] == MODEL
    assert find_tokenizer(MODEL, ServedName("x", "y"), store)[0] == MODEL


def test_a_tokenizer_that_is_not_here_is_asked_for(store: Store) -> None:
    with pytest.raises(NotFoundError) as caught:
        find_tokenizer(None, ServedName("org/remote", "org/remote"), store)
    assert "--tokenizer" in caught.value.hint
    with pytest.raises(NotFoundError, match="no model 'org/other'"):
        find_tokenizer("org/other", ServedName("x", "y"), store)


def test_tokens_that_nobody_counted_are_counted_from_the_text(store: Store) -> None:
    _, tokenizer = find_tokenizer(MODEL, ServedName(MODEL, MODEL), store)
    assert counted(Outcome(1, 0.0, text="abcd"), tokenizer).output_len == 4
