from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.errors import ContextLengthError, RequestError
from llmd.api.messages import BeamParams, Grammar, Load
from llmd.chat.model_text import ModelText
from llmd.requests.ending import EndChoice
from llmd.requests.sampling import SamplingChoice
from llmd.server.engines.engine_child import engine_command
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.supervisor import Supervisor
from llmd.server.generation.generation import Generation, GenerationRequest

WINDOW = 64
VOCAB = 259
GREEDY = SamplingChoice(temperature=0.0)
PROMPT = tuple(b"Hello")


@pytest.fixture
async def supervisor(model_directory: Path, probes: Path) -> AsyncIterator[Supervisor]:
    load = Load(str(model_directory), device="reference", kv_dtype="f32", kv_memory=64 << 20)
    supervisor = Supervisor("tiny", load, EngineStarter(engine_command(probes)))
    yield supervisor
    await supervisor.close()


def request(*prompts: tuple[int, ...], n: int = 1, **end: Any) -> GenerationRequest:
    return GenerationRequest(prompts or (PROMPT,), GREEDY, EndChoice(**end), n)


async def answers(generation: Generation, supervisor: Supervisor) -> dict[int, str]:
    texts: dict[int, str] = {}
    async with generation:
        async for index, piece in generation.pieces(supervisor):
            texts[index] = texts.get(index, "") + piece.text
    return texts


def test_prompt_must_leave_room_for_a_token(text: ModelText) -> None:
    full = (1,) * WINDOW
    with pytest.raises(ContextLengthError) as caught:
        Generation(request(full), text, WINDOW, VOCAB)
    assert (caught.value.prompt_len, caught.value.context_len) == (WINDOW, WINDOW)
    Generation(request(full[1:]), text, WINDOW, VOCAB)
    Generation(request(full, max_tokens=0), text, WINDOW, VOCAB)


@pytest.mark.parametrize("prompt", [(), (VOCAB,)])
def test_prompts_that_cannot_run_are_refused(text: ModelText, prompt: tuple[int, ...]) -> None:
    with pytest.raises(RequestError) as caught:
        Generation(request(PROMPT, prompt), text, WINDOW, VOCAB)
    assert caught.value.param == "messages"


async def test_answers_end_at_the_window_unless_told_otherwise(
    text: ModelText, supervisor: Supervisor
) -> None:
    generation = Generation(request(ignore_eos=True), text, WINDOW, VOCAB)
    await answers(generation, supervisor)
    assert generation.usage.prompt_tokens + generation.usage.completion_tokens == WINDOW
    short = Generation(request(max_tokens=5, ignore_eos=True), text, WINDOW, VOCAB)
    await answers(short, supervisor)
    assert short.usage.completion_tokens == 5


async def test_request_may_narrow_the_window_but_not_widen_it(
    text: ModelText, supervisor: Supervisor
) -> None:
    narrow = Generation(structs.replace(request(ignore_eos=True), window=20), text, WINDOW, VOCAB)
    await answers(narrow, supervisor)
    assert narrow.usage.prompt_tokens + narrow.usage.completion_tokens == 20
    long = request((1,) * WINDOW)
    with pytest.raises(ContextLengthError) as caught:
        Generation(structs.replace(long, window=10 * WINDOW), text, WINDOW, VOCAB, longer_window="do more")
    assert caught.value.hint == "shorten the prompt, or do more"
    with pytest.raises(ContextLengthError, match=rf"or raise num_ctx \(at most {WINDOW}\)"):
        Generation(structs.replace(long, window=20), text, WINDOW, VOCAB, longer_window="do more")


async def test_timing_tells_when_tokens_came(text: ModelText, supervisor: Supervisor) -> None:
    generation = Generation(request(max_tokens=3, ignore_eos=True), text, WINDOW, VOCAB)
    await answers(generation, supervisor)
    timing = generation.timing
    assert 0 < timing.submitted < timing.first_token < timing.last_token


async def test_choice_i_of_a_prompt_has_index_prompt_times_n_plus_i(
    text: ModelText, supervisor: Supervisor
) -> None:
    other = tuple(b"Good")
    single = await answers(Generation(request(other, max_tokens=5), text, WINDOW, VOCAB), supervisor)
    both = await answers(
        Generation(request(PROMPT, other, n=2, max_tokens=5), text, WINDOW, VOCAB), supervisor
    )
    assert sorted(both) == [0, 1, 2, 3]
    assert both[2] == both[3] == single[0]
    assert both[0] == both[1] != single[0]


async def test_engine_stops_at_a_stop_string_and_later_tokens_are_not_counted(
    text: ModelText, supervisor: Supervisor
) -> None:
    whole = Generation(request(max_tokens=40, ignore_eos=True), text, WINDOW, VOCAB)
    (answer,) = (await answers(whole, supervisor)).values()
    stop = answer[10:12]
    generation = Generation(request(max_tokens=40, ignore_eos=True, strings=(stop,)), text, WINDOW, VOCAB)
    assert (await answers(generation, supervisor))[0] == answer[: answer.index(stop)]
    assert generation.usage.completion_tokens < 40
    report = await supervisor.report()
    assert report is not None
    assert report.running == 0


async def test_answers_of_a_search_come_whole_and_may_be_few(text: ModelText, supervisor: Supervisor) -> None:
    beams = BeamParams(4, 3)
    asked = structs.replace(request(PROMPT * 8, tuple(b"Good"), n=3, max_tokens=6), beams=beams)
    generation = Generation(asked, text, WINDOW, VOCAB)
    found = await answers(generation, supervisor)
    assert sorted(found) == [*range(6)]
    assert len(set(found.values())) == 6
    assert generation.usage.completion_tokens == 36
    again = Generation(asked, text, WINDOW, VOCAB)
    await answers(again, supervisor)
    assert (generation.usage.cached_tokens, again.usage.cached_tokens) == (0, 32)
    choice = structs.replace(asked, grammar=Grammar("choice", '["yes", "no"]'))
    few = await answers(Generation(choice, text, WINDOW, VOCAB), supervisor)
    assert sorted(few) == [0, 1, 3, 4]
    assert set(few.values()) == {"yes", "no"}


async def test_leaving_early_frees_the_engine(text: ModelText, supervisor: Supervisor) -> None:
    generation = Generation(request(n=3, ignore_eos=True), text, WINDOW, VOCAB)
    async with generation:
        async for _ in generation.pieces(supervisor):
            break
    await answers(Generation(request(max_tokens=1), text, WINDOW, VOCAB), supervisor)
    report = await supervisor.report()
    assert report is not None
    assert (report.running, report.waiting) == (0, 0)


async def test_cached_tokens_of_a_prompt_count_once_whatever_its_choices(
    text: ModelText, supervisor: Supervisor
) -> None:
    asked = request((1,) * 40, (2,) * 40, n=2, max_tokens=3, ignore_eos=True)
    counted = []
    for _ in range(2):
        generation = Generation(asked, text, WINDOW, VOCAB)
        await answers(generation, supervisor)
        counted.append(generation.usage.cached_tokens)
    assert counted == [0, 2 * 32]
