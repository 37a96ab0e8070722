"""A report says of each sequence how far it has come and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from llmd.api.messages import BeamParams, Grammar, Submit, Vocabulary
from llmd.api.reports import SequenceState
from llmd.api.step import BLOCK_LEN
from llmd.engine.core import EngineCore
from tests.serving.cores import finish, submit

MakeCore = Callable[..., EngineCore]
VOCABULARY = Vocabulary(tuple(bytes([number]) for number in range(256)), (), (0,))


def states(core: EngineCore) -> dict[int, SequenceState]:
    """Return the states by request; each has one sequence."""
    found = core.report(sequences=True).sequences
    assert found is not None
    assert len({one.request_id for one in found}) == len(found)
    return {one.request_id: one for one in found}


def step_until(core: EngineCore, request_id: int, state: str) -> SequenceState:
    while (found := states(core)[request_id]).state != state:
        core.step()
    return found


def test_a_report_has_no_sequences_unless_they_are_asked_for(make_core: MakeCore) -> None:
    core = make_core()
    core.submit(submit(1, 20))
    assert core.report().sequences is None
    assert core.report(sequences=True).sequences is not None


def test_a_request_goes_from_the_queue_through_prefill_to_decode(make_core: MakeCore) -> None:
    core = make_core(chunk_len=32)
    core.submit(submit(1, 100))
    assert states(core) == {1: SequenceState(1, "waiting")}
    prefill = step_until(core, 1, "prefill")
    assert 0 < prefill.prompt_done < 100
    decode = step_until(core, 1, "decode")
    assert decode.prompt_done == 100
    assert decode.kv_blocks >= 100 // BLOCK_LEN + 1
    finish(core)
    assert states(core) == {}


def test_every_step_of_an_answer_is_decode(make_core: MakeCore) -> None:
    core = make_core()
    core.submit(submit(1, 20, max_tokens=30))
    step_until(core, 1, "decode")
    while core.busy:
        core.step()
        assert all(one.state == "decode" for one in states(core).values())


def test_a_request_waits_for_a_slot(make_core: MakeCore) -> None:
    core = make_core(slots=1)
    for number in (1, 2):
        core.submit(submit(number, 20))
    core.step()
    assert states(core)[2] == SequenceState(2, "waiting", "slots")


def test_a_preempted_request_waits_for_blocks_and_then_computes_again(make_core: MakeCore) -> None:
    core = make_core(slots=6, budget_bytes=120_000)
    for number in range(1, 7):
        core.submit(submit(number, 60, max_tokens=40))
    while not core.report().preemptions:
        core.step()
    waiting = [one for one in states(core).values() if one.state == "waiting"]
    assert "kv_blocks" in {one.waiting_for for one in waiting}
    assert all(one.prompt_done == one.kv_blocks == 0 for one in waiting)
    assert finish(core)


def test_a_request_waits_for_its_grammar(make_core: MakeCore) -> None:
    core = make_core()
    try:
        core.set_vocabulary(VOCABULARY)
        core.submit(structs.replace(submit(1, 5), grammar=Grammar("regex", "a+")))
        assert states(core) == {1: SequenceState(1, "waiting", "grammar")}
        search = structs.replace(submit(2, 5), grammar=Grammar("regex", "b+"), beams=BeamParams(2))
        core.submit(search)
        assert states(core)[2] == SequenceState(2, "waiting", "grammar")
    finally:
        core.close()


def test_the_sequences_of_a_search_are_those_of_its_request(make_core: MakeCore) -> None:
    core = make_core()
    request: Submit = structs.replace(submit(1, 20, max_tokens=20), beams=BeamParams(3))
    core.submit(request)
    for _ in range(8):
        core.step()
    found = core.report(sequences=True).sequences
    assert found is not None
    assert {(one.request_id, one.state) for one in found} == {(1, "decode")}
    assert len(found) > 1


def test_answers_to_one_prompt_wait_for_its_prefill(make_core: MakeCore) -> None:
    core = make_core(chunk_len=32)
    first: Any = submit(1, 100)
    core.submit(first)
    core.submit(structs.replace(first, request_id=2))
    core.step()
    found = states(core)
    assert found[1].state == "prefill"
    assert found[2] == SequenceState(2, "waiting", "earlier")
