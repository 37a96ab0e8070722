from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.api.errors import EngineCrashedError
from llmd.api.messages import Grammar, Vocabulary
from llmd.engine.grammars.messages import BoundRow, Compile, Compiled, Forget
from llmd.engine.grammars.process import GrammarProcess

END = 128
VOCABULARY = Vocabulary((*(bytes([value]) for value in range(128)), b"<end>"), (END,), (END,))
LARGE = Grammar("choice", '["' + "x" * 200_000 + '"]')
"""Larger than the buffer of a socket."""
ENDLESS = Grammar("json_schema", '{"multipleOf": 99999989}')
"""Takes longer to compile than any test waits."""


@pytest.fixture
def process() -> Iterator[GrammarProcess]:
    one = GrammarProcess(VOCABULARY, 129, max_rows=2)
    yield one
    one.end()


def compiled(process: GrammarProcess, count: int) -> list[Compiled]:
    found: list[Compiled] = []
    while len(found) < count:
        process.wait(20.0)
        found += process.compiled()
    return found


def row(sequence_id: int) -> BoundRow:
    return BoundRow(sequence_id, (END,), (), False)


def test_nothing_waits_for_it_while_it_takes_in_the_vocabulary(process: GrammarProcess) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    for sequence_id in range(4):
        process.tell(Compile(sequence_id, LARGE))
    process.tell(Forget(2))
    assert process.compiled() == []
    os.kill(process.pid, signal.SIGCONT)
    found: set[int] = set()
    while not found >= {0, 1, 3}:  # 2 comes too if it was compiled before it was forgotten
        found |= {one.sequence_id for one in compiled(process, 1)}


def test_masks_that_nobody_took_are_not_taken_for_the_next(process: GrammarProcess) -> None:
    for sequence_id, pattern in enumerate(["a", "b"]):
        process.tell(Compile(sequence_id, Grammar("regex", pattern)))
    assert compiled(process, 2) == [Compiled(0), Compiled(1)]
    process.fill([row(0), row(1)])
    process.wait(20.0)
    os.kill(process.pid, signal.SIGSTOP)
    process.fill([row(1)])
    go_on = threading.Timer(0.1, os.kill, (process.pid, signal.SIGCONT))
    go_on.start()
    masks, failed = process.filled(1)
    assert (masks.tolist(), failed) == ([[0, 0, 0, 1 << ord("b") % 32, 0]], {})
    go_on.join()


def test_a_process_that_has_ended_is_told_by_what_is_asked_of_it(process: GrammarProcess) -> None:
    process.tell(Compile(0, Grammar("regex", "a")))
    assert compiled(process, 1) == [Compiled(0)]
    process.fill([row(0)])
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineCrashedError, match="status -9"):
        fill_for_ever(process)


def fill_for_ever(process: GrammarProcess) -> None:
    while True:
        process.filled(1)
        process.fill([row(0)])


def test_it_ends_with_the_engine_whatever_it_is_doing() -> None:
    """As if the engine was killed: the socket closes without a message."""
    one = GrammarProcess(VOCABULARY, 129, max_rows=2)
    one.tell(Compile(0, Grammar("regex", "a")))
    one.tell(Compile(1, ENDLESS))
    assert compiled(one, 1) == [Compiled(0)]
    for _ in range(50):  # the other grammar starts to compile meanwhile
        one.fill([row(0)])
        one.filled(1)
    one._socket.close()
    assert one._process.wait(20.0) == 0


def test_it_ends_with_an_engine_that_nobody_closed() -> None:
    one = GrammarProcess(VOCABULARY, 129, max_rows=2)
    pid = one.pid
    del one
    gc.collect()
    assert not Path(f"/proc/{pid}").exists()


def test_it_gets_none_of_the_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_API_KEY", "secret")
    one = GrammarProcess(VOCABULARY, 129, max_rows=2)
    one.tell(Compile(0, Grammar("regex", "a")))
    assert compiled(one, 1) == [Compiled(0)]
    assert b"LLMD_API_KEY" not in Path(f"/proc/{one.pid}/environ").read_bytes()
    one.end()
