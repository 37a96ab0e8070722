"""Grammars of requests: each answer matches its grammar, regardless of other requests and of preemptions."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jsonschema
import msgspec
import numpy as np
import pytest

from llmd.api.errors import EngineCrashedError, GrammarError
from llmd.api.messages import Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import Failed, TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.grammars.grammars import Grammars
from llmd.grammar.json_schema import schema_grammar
from llmd.scheduler.sequence import Sequence
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.null_rows import STRIDE
from llmd.testing.plans import TinyModel
from tests.serving import cores

MakeCore = Callable[..., EngineCore]

VOCAB_SIZE = TinyModel().vocab
END = 128
VOCABULARY = Vocabulary(
    (*(bytes([value]) for value in range(128)), b"<end>", b"<think>", b"</think>"), (128, 129, 130), (END,)
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "kind": {"enum": ["cat", "dog"]},
        "ages": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 3},
    },
    "required": ["name", "kind", "ages"],
    "additionalProperties": False,
}
GRAMMARS = (
    schema_grammar(PERSON),
    Grammar("regex", "(ab|cd){3,20}[0-9]"),
    Grammar("choice", '["yes, of course", "no, never", "perhaps"]'),
    Grammar("gbnf", 'root ::= "<" [a-z]{5,9} ">"'),
    None,
)


def submit(number: int, grammar: Grammar | None, *, max_tokens: int = 60, **stop: object) -> Submit:
    prompt = tuple(np.random.default_rng(number).integers(0, VOCAB_SIZE, 40).tolist())
    sampling = SamplingParams(seed=number, temperature=float(number % 3), top_p=0.98 if number % 2 else 1.0)
    ends = StopParams(**{"max_tokens": max_tokens, "stop_ids": (END,), **stop})  # type: ignore[arg-type]
    return Submit(number, prompt, sampling, ends, grammar=grammar)


REQUESTS = [submit(number, GRAMMARS[number % len(GRAMMARS)]) for number in range(1, 13)]


def run(core: EngineCore, *requests: Submit) -> dict[int, list[TokenOutput]]:
    """Return the tokens of requests that can all run at once."""
    tokens: dict[int, list[TokenOutput]] = {request.request_id: [] for request in requests}
    for request in requests:
        core.submit(request)
    while core.busy:
        output = core.step()
        assert not output.failed
        for token in output.tokens:
            tokens[token.request_id].append(token)
    return tokens


def ids(outputs: list[TokenOutput]) -> list[int]:
    return [output.token for output in outputs]


def text(outputs: list[TokenOutput]) -> str:
    return bytes(output.token for output in outputs if output.finish != "stop").decode()


@pytest.fixture
def make(make_core: MakeCore) -> MakeCore:
    """Return a core with its vocabulary set."""

    def core(**options: object) -> EngineCore:
        made = make_core(**options)
        made.set_vocabulary(VOCABULARY)
        return made

    return core


def test_answers_match_their_grammars_and_end_where_these_do(make: MakeCore) -> None:
    outputs = run(
        make(slots=12), *(submit(number, schema_grammar(PERSON), max_tokens=200) for number in range(9))
    )
    for answer in outputs.values():
        assert answer[-1].finish == "stop"
        assert answer[-1].token == END
        jsonschema.validate(json.loads(text(answer)), PERSON)


def test_tokens_are_the_same_alone_in_a_crowd_and_with_preemption(make: MakeCore) -> None:
    one = make()
    alone = {r.request_id: ids(run(one, r)[r.request_id]) for r in REQUESTS}
    small = make(slots=8, budget_bytes=120_000)
    run(
        small, submit(99, Grammar("regex", "b"))
    )  # the vocabulary is loaded: requests with grammars compete for slots, too
    crowd = {number: ids(tokens) for number, tokens in run(small, *REQUESTS).items()}
    assert crowd == alone
    assert small.report().preemptions >= 3
    assert small.report().kv_blocks_used == 0


def test_tokens_do_not_depend_on_the_split(make: MakeCore) -> None:
    expected, found = run(make(slots=12), *REQUESTS), run(make(slots=12, cuts=(3,)), *REQUESTS)
    assert {n: ids(tokens) for n, tokens in found.items()} == {n: ids(t) for n, t in expected.items()}


def test_a_resubmitted_request_goes_on_with_the_same_tokens(make: MakeCore) -> None:
    first, second = make(), make()
    for request in REQUESTS[:5]:
        whole = ids(run(first, request)[request.request_id])
        for cut in (1, len(whole) // 2, len(whole) - 1):
            again = msgspec.structs.replace(request, output=tuple(whole[:cut]))
            assert ids(run(second, again)[request.request_id]) == whole[cut:]


def test_a_draw_beyond_the_candidates_stays_in_the_grammar(make: MakeCore) -> None:
    """Sixty-four candidates cannot contain the ninety digits and letters that are equally likely here."""
    hot = SamplingParams(seed=5, temperature=2.0)
    pattern = Grammar("regex", "[ -~]{40}")
    requests = [msgspec.structs.replace(submit(n, pattern, max_tokens=50), sampling=hot) for n in range(4)]
    for answer in run(make(), *requests).values():
        assert len(text(answer)) == 40
        assert answer[-1].finish == "stop"


def test_logprobs_are_those_of_the_unmodified_distribution(make: MakeCore) -> None:
    sampling = SamplingParams(seed=1, temperature=1.0, logprobs=3)
    request = msgspec.structs.replace(submit(1, Grammar("regex", "a{5}")), sampling=sampling)
    core = make()
    outputs = run(core, request)[1]
    logits = core.forward(np.array([*request.prompt, *ids(outputs)], np.int32)).astype(np.float64)
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for row, output in enumerate(outputs, start=len(request.prompt) - 1):
        assert output.logprobs is not None
        assert output.logprobs.chosen == pytest.approx(logprobs[row, output.token], abs=1e-5)
        assert list(output.logprobs.top_ids) == np.argsort(-logits[row], kind="stable")[:3].tolist()


def test_penalties_and_grammars_hold_together(make: MakeCore) -> None:
    sampling = SamplingParams(seed=1, temperature=0.0, logit_bias=((ord("b"), 50.0), (ord("z"), 100.0)))
    request = msgspec.structs.replace(submit(1, Grammar("regex", "[abc]{4}")), sampling=sampling)
    assert text(run(make(), request)[1]) == "bbbb"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_request_that_forbids_what_its_grammar_needs_fails_and_gets_no_other_token(
    make: MakeCore, temperature: float
) -> None:
    sampling = SamplingParams(seed=1, temperature=temperature, logit_bias=((ord("b"), -100.0),))
    request = msgspec.structs.replace(submit(1, Grammar("regex", "aab")), sampling=sampling)
    core = make()
    core.submit(request)
    core.submit(submit(2, Grammar("regex", "aab")))
    tokens: dict[int, list[int]] = {1: [], 2: []}
    failed: list[Failed] = []
    while core.busy:
        output = core.step()
        failed += output.failed
        for token in output.tokens:
            tokens[token.request_id].append(token.token)
    assert tokens == {1: [*b"aa"], 2: [*b"aab", END]}
    assert [one.request_id for one in failed] == [1]
    assert "forbids every token" in failed[0].message


def test_a_complete_answer_ends_whatever_the_request_says_of_ends(make: MakeCore) -> None:
    for stop in ({"stop_ids": ()}, {"min_tokens": 30}):
        answer = run(make(), submit(1, Grammar("regex", "a{5}"), **stop))[1]
        assert (text(answer), answer[-1].finish) == ("aaaaa", "stop")
    longer = run(make(), submit(1, Grammar("regex", "a{1,50}"), min_tokens=30))[1]
    assert len(text(longer)) >= 30


def test_the_token_limit_cuts_an_answer_short(make: MakeCore) -> None:
    answer = run(make(), submit(1, Grammar("regex", "a{50}"), max_tokens=7))[1]
    assert (text(answer), answer[-1].finish) == ("aaaaaaa", "length")


def test_a_bad_grammar_fails_its_request_and_no_other(make: MakeCore) -> None:
    core = make()
    bad = submit(1, schema_grammar({"uniqueItems": True}))
    dead = submit(2, Grammar("lark", 'start: "ab" /[^\\s\\S]/'))
    good = submit(3, Grammar("regex", "a{5}"))
    failed: list[Failed] = []
    tokens: list[TokenOutput] = []
    for request in (bad, dead, good):
        core.submit(request)
    while core.busy:
        output = core.step()
        failed += output.failed
        tokens += [token for token in output.tokens if token.request_id == 3]
    assert {one.request_id: one.error for one in failed} == {1: "GrammarError", 2: "GrammarError"}
    assert next("uniqueItems at #" in one.message for one in failed if one.request_id == 1)
    assert text(tokens) == "aaaaa"
    assert core.report().kv_blocks_used == 0


def test_a_grammar_needs_a_vocabulary_and_an_end(make_core: MakeCore) -> None:
    core = make_core()
    with pytest.raises(GrammarError, match="knows no vocabulary"):
        core.submit(submit(1, GRAMMARS[0]))
    core.set_vocabulary(msgspec.structs.replace(VOCABULARY, end_ids=()))
    with pytest.raises(GrammarError, match="no token that ends an answer"):
        core.submit(submit(1, GRAMMARS[0], stop_ids=()))
    assert not core.busy


def test_others_run_while_grammars_wait_for_the_vocabulary(make: MakeCore) -> None:
    core = make()
    with stopped(core):
        core.submit(submit(1, Grammar("regex", "a{5}")))
        assert core.step().tokens == ()
        free = run_until(core, 2, submit(2, None))
        assert len(free) == 60
        assert core.busy
    assert text(run_until(core, 1)) == "aaaaa"


def test_others_run_while_a_grammar_is_compiled(make: MakeCore) -> None:
    core = make()
    run(core, submit(3, Grammar("regex", "b")))
    with stopped(core):
        core.submit(submit(1, Grammar("regex", "a{5}")))
        assert len(run_until(core, 2, submit(2, None))) == 60
    assert text(run_until(core, 1)) == "aaaaa"


def test_a_request_may_leave_while_its_grammar_is_compiled(make: MakeCore) -> None:
    core = make()
    with stopped(core):
        for number in (1, 2):
            core.submit(submit(number, Grammar("regex", "a{5}")))
            core.cancel(number)
        assert not core.busy
    assert text(run(core, submit(3, Grammar("regex", "b{5}")))[3]) == "bbbbb"


@pytest.mark.parametrize("num_tokens", [0, 3])
def test_the_end_of_the_process_is_told_by_the_step_that_needs_it(make: MakeCore, num_tokens: int) -> None:
    core = make()
    core.submit(submit(1, Grammar("regex", "a{50}")))
    while core.report().output_tokens < num_tokens:
        core.step()
    os.kill(grammar_pid(core), signal.SIGKILL)
    with pytest.raises(EngineCrashedError, match="grammar process exited"):
        run_until(core, 1)


@contextmanager
def stopped(core: EngineCore) -> Iterator[None]:
    """Stop the grammar process, whatever it is doing."""
    os.kill(grammar_pid(core), signal.SIGSTOP)
    yield
    os.kill(grammar_pid(core), signal.SIGCONT)


def grammar_pid(core: EngineCore) -> int:
    process = core._grammars._process
    assert process is not None
    return process.pid


def run_until(core: EngineCore, request_id: int, *requests: Submit) -> list[TokenOutput]:
    """Return the tokens of one request, until it ends."""
    for request in requests:
        core.submit(request)
    tokens: list[TokenOutput] = []
    while not (tokens and tokens[-1].finish):
        tokens += [token for token in core.step().tokens if token.request_id == request_id]
    return tokens


def test_masks_are_filled_for_bound_rows_alone() -> None:
    grammars = Grammars(VOCAB_SIZE, 4)
    grammars.set_vocabulary(VOCABULARY)
    request = submit(1, Grammar("regex", "ab"))
    grammars.open(request, arrival=0)
    while not (compiled := [*grammars.compiled()]):
        grammars.wait(20.0)
    (bound,) = compiled
    free = Sequence.of(submit(2, None))
    assert grammars.fill([free]) is None
    pending = grammars.fill([free, bound])
    assert pending is not None
    assert pending.masked == [False, True]
    assert grammars.filled(pending).tolist() == [[0, 0, 0, 1 << ord("a") % 32, 0]]
    bound.append(ord("a"))
    again = grammars.fill([bound])
    assert again is not None
    assert grammars.filled(again).tolist() == [[0, 0, 0, 1 << ord("b") % 32, 0]]
    grammars.close(1)
    assert not grammars.binds(1)
    grammars.shut_down()


def test_a_row_under_a_grammar_lets_the_device_work_on() -> None:
    """Each reading of the clock advances host time:
    a step that is submitted after a wait finds the device idle.
    """
    clock = Clock()
    core = cores.make_core(NullDevice(clock, step_s=25.0, pause=clock.pause), depth=2)
    drawn = {STRIDE * position % VOCAB_SIZE for position in range(80)}
    end = next(token for token in range(VOCAB_SIZE) if token not in drawn)
    core.set_vocabulary(
        Vocabulary(tuple(b"%c" % (97 + token % 26) for token in range(VOCAB_SIZE)), (), (end,))
    )
    for request in (
        submit(1, Grammar("regex", "[a-z]*"), max_tokens=40, stop_ids=()),
        submit(2, None, max_tokens=40),
    ):
        core.submit(msgspec.structs.replace(request, sampling=SamplingParams(0, temperature=0.0)))
        while not core.step().tokens:
            pass
    core.step()
    (stage,) = core._pipeline._stages
    assert isinstance(stage, NullStage)
    before = stage.idle_s
    for _ in range(10):
        assert len(core.step().tokens) == 2
    assert stage.idle_s == before
    core.close()


class Clock:
    """A clock that advances by one second at each reading."""

    def __init__(self) -> None:
        self._now = 0.0

    def pause(self, seconds: float) -> None:
        self._now += seconds

    def __call__(self) -> float:
        self._now += 1.0
        return self._now
