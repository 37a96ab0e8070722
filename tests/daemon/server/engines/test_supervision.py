"""Scripts of events and the commands that they cause."""

from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.errors import CheckpointError, DeviceError, EngineCrashedError, GrammarError, LlmdError
from llmd.api.messages import (
    BeamParams,
    Cancel,
    EmbedText,
    Grammar,
    Loaded,
    Replanned,
    Shutdown,
    StageReport,
    StopParams,
    Submit,
    Vocabulary,
)
from llmd.api.results import BeamOutput, Embedded, Failed, Hypothesis, Output, TextVector, TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.server.engines.supervision import Command, Deliver, Fail, Phase, Send, Start, Supervision
from llmd.server.errors import UnavailableError

LOADED = Loaded(
    architecture="llama",
    vocab_size=10,
    context_len=64,
    max_context_len=64,
    num_parameters=1,
    formats=("f32",),
    stages=(),
    kv_tokens=64,
    load_s=0.0,
)


def request(request_id: int, *output: int) -> Submit:
    return Submit(request_id, (1, 2), SamplingParams(seed=request_id), StopParams(9), output)


def token(request_id: int, value: int, finish: str | None = None) -> Output:
    return Output((TokenOutput(request_id, value, finish),))


def sent(commands: list[Command]) -> list[Submit]:
    return [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Submit)]


@pytest.fixture
def ready() -> Supervision:
    supervision = Supervision("tiny", backoff_s=(1.0, 4.0))
    supervision.receive(LOADED)
    return supervision


def crash(supervision: Supervision) -> list[Command]:
    """Kill the engine and, if it is restarted, load it again."""
    commands = supervision.died("signal 9")
    if supervision.phase is Phase.LOADING:
        commands += supervision.receive(LOADED)
    return commands


def test_vocabulary_goes_to_every_engine_once_before_its_first_grammar(ready: Supervision) -> None:
    def messages(commands: list[Command]) -> list[str]:
        return [type(command.message).__name__ for command in commands if isinstance(command, Send)]

    ready.set_vocabulary(Vocabulary((b"a",)))
    grammar = Grammar("regex", "a")
    bound = [structs.replace(request(number), grammar=grammar) for number in (8, 9)]
    assert messages(ready.submit(request(7))) == ["Submit"]
    assert messages(ready.submit(bound[0])) == ["Vocabulary", "Submit"]
    assert messages(ready.submit(bound[1])) == ["Submit"]
    assert messages(crash(ready)) == ["Submit", "Vocabulary", "Submit", "Submit"]


def test_a_request_that_fails_within_a_step_ends_alone(ready: Supervision) -> None:
    first, second = (sent(ready.submit(request(number)))[0].request_id for number in (7, 8))
    failed = Failed(first, "GrammarError", "too complex")
    (delivered, failure) = ready.receive(Output((TokenOutput(second, 5),), failed=(failed,)))
    assert delivered == Deliver(TokenOutput(8, 5))
    assert isinstance(failure, Fail)
    assert (failure.request_id, type(failure.error)) == (7, GrammarError)
    assert ready.live == 1


def test_a_text_goes_to_the_next_engine_until_its_vector_has_come(ready: Supervision) -> None:
    def texts(commands: list[Command]) -> list[EmbedText]:
        return [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, EmbedText)]

    (first,) = texts(ready.submit(EmbedText(7, (1, 2))))
    ready.submit(EmbedText(8, (3,)))
    assert ready.receive(Embedded((TextVector(first.request_id, b"v"),))) == [Deliver(TextVector(7, b"v"))]
    assert ready.receive(Embedded((TextVector(first.request_id, b"v"),))) == []
    (again,) = texts(crash(ready))
    assert again.tokens == (3,)
    assert ready.receive(Embedded((TextVector(again.request_id, b"w"),))) == [Deliver(TextVector(8, b"w"))]
    assert ready.live == 0


def test_a_search_begins_anew_in_the_next_engine_until_its_answers_have_come(ready: Supervision) -> None:
    found = (Hypothesis((5, 6), "length", -1.0),)
    (first,) = sent(ready.submit(structs.replace(request(7), beams=BeamParams(2))))
    (again,) = sent(crash(ready))
    assert (again.prompt, again.output, again.beams) == (first.prompt, (), BeamParams(2))
    assert ready.receive(Output((), beams=(BeamOutput(first.request_id, found),))) == []
    assert ready.receive(Output((), beams=(BeamOutput(again.request_id, found),))) == [
        Deliver(BeamOutput(7, found))
    ]
    assert ready.live == 0


def test_a_vector_proves_an_engine_as_a_token_does(ready: Supervision) -> None:
    ready.submit(EmbedText(7, (1,)))
    ready.submit(EmbedText(8, (1,)))
    commands = crash(ready)
    (first, _) = [c.message for c in commands if isinstance(c, Send)]
    assert isinstance(first, EmbedText)
    ready.receive(Embedded((TextVector(first.request_id, b"v"),)))
    assert ready.died("signal 9") == [Start(0.0)]


def test_requests_wait_while_the_engine_loads() -> None:
    supervision = Supervision("tiny")
    assert supervision.submit(request(7)) == []
    assert [s.prompt for s in sent(supervision.receive(LOADED))] == [(1, 2)]


def test_tokens_reach_the_reader_under_its_own_id(ready: Supervision) -> None:
    (submit,) = sent(ready.submit(request(7)))
    assert ready.receive(token(submit.request_id, 5)) == [Deliver(TokenOutput(7, 5))]
    assert ready.live == 1
    assert ready.receive(token(submit.request_id, 6, "length")) == [Deliver(TokenOutput(7, 6, "length"))]
    assert ready.live == 0
    assert ready.receive(token(submit.request_id, 6)) == []


def test_dead_engine_starts_at_once_and_gets_every_request_with_its_tokens(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    ready.submit(request(8))
    ready.receive(token(first.request_id, 5))
    ready.receive(token(first.request_id, 6))
    assert ready.died("signal 9") == [Start(0.0)]
    resubmitted = sent(ready.receive(LOADED))
    assert [(s.output, s.sampling.seed) for s in resubmitted] == [((5, 6), 7), ((), 8)]
    assert ready.receive(token(resubmitted[0].request_id, 4)) == [Deliver(TokenOutput(7, 4))]


def test_an_engines_number_of_a_request_leads_to_its_reader(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    assert ready.reader_of(first.request_id) == 7
    (again,) = sent(crash(ready))
    assert again.request_id != first.request_id
    assert (ready.reader_of(first.request_id), ready.reader_of(again.request_id)) == (None, 7)


def test_requests_stay_with_an_engine_that_says_again_that_it_has_loaded(ready: Supervision) -> None:
    (submit,) = sent(ready.submit(request(7)))
    again = structs.replace(LOADED, kv_tokens=32)
    assert ready.receive(again) == []
    assert ready.loaded is again
    assert ready.receive(token(submit.request_id, 5)) == [Deliver(TokenOutput(7, 5))]


def test_requests_stay_with_an_engine_that_has_moved_its_model(ready: Supervision) -> None:
    (submit,) = sent(ready.submit(request(7)))
    stage = StageReport("cpu", "layers 0-1", 10, 10, 10)
    lost_before = ready.lost_devices
    assert ready.receive(Replanned(1, (stage,), 32, ("f16",), ("gpu was lost",))) == []
    assert (lost_before, stage.device in ready.lost_devices) == ((), False)
    assert ready.phase is Phase.READY
    assert ready.loaded == structs.replace(
        LOADED, stages=(stage,), kv_tokens=32, formats=("f16",), notices=("gpu was lost",)
    )
    assert ready.receive(token(submit.request_id, 5)) == [Deliver(TokenOutput(7, 5))]
    assert ready.died("signal 9") == [Start(0.0)]


def test_state_of_the_last_token_goes_to_the_next_engine_and_back_from_a_pause(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    ready.receive(Output((TokenOutput(first.request_id, 5, state=b"five"),)))
    ready.receive(Output((TokenOutput(first.request_id, 6, state=b"six"),)))
    ready.died("signal 9")
    (again,) = sent(ready.receive(LOADED))
    assert (again.output, again.state) == ((5, 6), b"six")
    ready.pause(7)
    assert [submit.state for submit in sent(ready.resume(7))] == [b"six"]


def test_request_that_arrives_during_the_restart_is_sent_after_the_older_ones(ready: Supervision) -> None:
    ready.submit(request(7))
    ready.died("signal 9")
    assert ready.submit(request(8)) == []
    assert [s.sampling.seed for s in sent(ready.receive(LOADED))] == [7, 8]


def test_engine_that_dies_without_progress_is_restarted_twice_more_with_back_off(ready: Supervision) -> None:
    ready.submit(request(7))
    delays = [c.after_s for _ in range(3) for c in crash(ready) if isinstance(c, Start)]
    assert delays == [0.0, 1.0, 4.0]
    (failure,) = ready.died("signal 11")
    assert isinstance(failure, Fail)
    assert failure.request_id == 7
    assert isinstance(failure.error, EngineCrashedError)
    assert "signal 11" in failure.error.message
    assert ready.phase is Phase.FAILED


def test_failed_model_refuses_later_requests_with_its_reason(ready: Supervision) -> None:
    ready.submit(request(7))
    for _ in range(4):
        crash(ready)
    (refusal,) = ready.submit(request(8))
    assert isinstance(refusal, Fail)
    assert isinstance(refusal.error, UnavailableError)
    assert "signal 9" in refusal.error.message


def test_token_of_a_resubmitted_request_wipes_earlier_deaths(ready: Supervision) -> None:
    ready.submit(request(7))
    for _ in range(3):
        (submit,) = sent(crash(ready))
    ready.receive(token(submit.request_id, 5))
    assert ready.died("signal 9") == [Start(0.0)]


def test_token_of_a_new_request_does_not_excuse_a_resubmitted_one(ready: Supervision) -> None:
    ready.submit(request(7))
    for attempt in range(3):
        crash(ready)
        (fresh,) = sent(ready.submit(request(100 + attempt)))
        ready.receive(token(fresh.request_id, 5, "stop"))
    ready.died("signal 9")
    assert ready.phase is Phase.FAILED


def test_once_the_resubmitted_requests_have_left_any_token_proves_the_engine(ready: Supervision) -> None:
    ready.submit(request(7))
    crash(ready)
    crash(ready)
    ready.cancel(7)
    (fresh,) = sent(ready.submit(request(8)))
    ready.receive(token(fresh.request_id, 5))
    assert ready.died("signal 9") == [Start(0.0)]


def test_engine_that_dies_in_its_first_load_is_not_tried_again() -> None:
    supervision = Supervision("tiny")
    supervision.submit(request(7))
    (failure,) = supervision.died("signal 9")
    assert isinstance(failure, Fail)
    assert "while it loaded" in failure.error.message


def test_loading_error_keeps_its_class_and_ends_the_engine() -> None:
    supervision = Supervision("tiny")
    supervision.submit(request(7))
    message = Failed(None, "CheckpointError", "config.json: a field is missing", "fix it")
    shutdown, failure = supervision.receive(message)
    assert shutdown == Send(Shutdown())
    assert isinstance(failure, Fail)
    assert isinstance(failure.error, CheckpointError)
    assert failure.error.message == "config.json: a field is missing"
    assert failure.error.file == "config.json"
    assert supervision.died("exit status 1") == []


def test_error_of_one_request_leaves_the_others(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    ready.submit(request(8))
    (failure,) = ready.receive(Failed(first.request_id, "DeviceError", "lost", "see `llmd doctor`"))
    assert isinstance(failure, Fail)
    assert (failure.request_id, type(failure.error)) == (7, DeviceError)
    assert ready.live == 1
    assert ready.phase is Phase.READY


def test_unknown_error_names_become_the_root_error(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    (failure,) = ready.receive(Failed(first.request_id, "annotations", "odd"))
    assert isinstance(failure, Fail)
    assert type(failure.error) is LlmdError


def test_cancel_reaches_the_engine_once_and_its_late_tokens_nobody(ready: Supervision) -> None:
    (submit,) = sent(ready.submit(request(7)))
    assert ready.cancel(7) == [Send(Cancel(submit.request_id))]
    assert ready.cancel(7) == []
    assert ready.receive(token(submit.request_id, 5)) == []


def test_request_cancelled_during_the_restart_is_not_resubmitted(ready: Supervision) -> None:
    ready.submit(request(7))
    ready.died("signal 9")
    assert ready.cancel(7) == []
    assert ready.receive(LOADED) == []


def test_paused_request_leaves_the_engine_and_comes_back_with_its_tokens(ready: Supervision) -> None:
    (first,) = sent(ready.submit(request(7)))
    ready.receive(token(first.request_id, 5))
    assert ready.pause(7) == [Send(Cancel(first.request_id))]
    assert ready.receive(token(first.request_id, 6)) == []
    (again,) = sent(ready.resume(7))
    assert again.output == (5,)
    assert again.request_id != first.request_id
    assert ready.resume(7) == []


def test_paused_request_stays_away_from_a_new_engine(ready: Supervision) -> None:
    ready.submit(request(7))
    ready.pause(7)
    assert sent(crash(ready)) == []
    assert len(sent(ready.resume(7))) == 1


def test_close_ends_live_requests_and_a_later_death_is_expected(ready: Supervision) -> None:
    ready.submit(request(7))
    error = UnavailableError("shutting down", code="shutting_down")
    assert ready.close(error) == [Send(Shutdown()), Fail(7, error)]
    assert ready.died("exit status 0") == []
    assert ready.submit(request(8)) == [Fail(8, error)]
