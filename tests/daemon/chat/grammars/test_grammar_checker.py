from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.chat.grammars import grammar_checker
from llmd.chat.grammars.check_messages import Checked, CheckJob
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.grammar.json_schema import schema_grammar
from llmd.process.worker import WorkerLostError

ENDLESS = schema_grammar({"type": "integer", "multipleOf": 999_983})


@pytest.fixture
def checker() -> Iterator[GrammarChecker]:
    with GrammarChecker(time_limit_s=20.0) as checker:
        yield checker


def job(pattern: str) -> CheckJob:
    return CheckJob(Grammar("regex", pattern), ())


def pid(checker: GrammarChecker) -> int:
    assert checker._process is not None
    return checker._process.pid


def test_a_bad_grammar_is_refused_with_its_reason(checker: GrammarChecker) -> None:
    checker.check(job("a+"))
    with pytest.raises(GrammarError, match="unclosed group") as caught:
        checker.check(job("(a"))
    assert caught.value.hint == "correct it"


def test_a_grammar_that_takes_too_long_is_refused_and_the_next_one_is_tried() -> None:
    with GrammarChecker(time_limit_s=0.5) as checker:
        with pytest.raises(GrammarError, match=r"not compiled within 0\.5 s"):
            checker.check(CheckJob(ENDLESS, ()))
        assert checker._process is None
        with pytest.raises(GrammarError, match="unclosed group"):
            checker.check(job("(a"))


def test_a_grammar_that_ends_the_process_is_refused_and_the_next_one_is_tried(
    checker: GrammarChecker,
) -> None:
    checker.check(job("a"))
    lost = checker._process
    assert lost is not None
    lost.ask = lambda *_a, **_k: _die(lost.pid)  # type: ignore[method-assign]
    with pytest.raises(GrammarError, match="more memory than is allowed"):
        checker.check(job("b"))
    checker.check(job("c"))
    assert pid(checker) != lost.pid


def _die(process_id: int) -> bytes:
    os.kill(process_id, signal.SIGKILL)
    raise WorkerLostError("it ended without an answer")


def test_grammars_are_not_tried_again_until_they_are_forgotten(
    checker: GrammarChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar_checker, "KEPT", 2)
    asked: list[str] = []
    ask = checker._ask

    def noted(job: CheckJob) -> Checked:
        asked.append(job.grammar.text)
        return ask(job)

    monkeypatch.setattr(checker, "_ask", noted)
    for pattern in ("a", "b", "a", "c", "b", "a"):
        checker.check(job(pattern))
    for _ in range(2):
        with pytest.raises(GrammarError):
            checker.check(job("("))
    assert asked == ["a", "b", "c", "a", "("]


def test_what_is_known_waits_for_nobodys_check(checker: GrammarChecker) -> None:
    checker.check(job("a"))
    with checker._lock:  # as if another grammar is being checked
        checker.check(job("a"))


def test_closing_ends_process_and_threads(checker: GrammarChecker) -> None:
    checker.check(job("a"))
    process_id = pid(checker)
    checker.close()
    with pytest.raises(RuntimeError):
        checker.threads.submit(print)
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
