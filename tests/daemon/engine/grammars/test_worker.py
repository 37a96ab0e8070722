from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import cast

import msgspec
import pytest

from llmd.api.messages import Grammar, Vocabulary
from llmd.engine.grammars.messages import (
    BoundRow,
    Compile,
    Compiled,
    Fill,
    Filled,
    Forget,
    Fork,
    FromGrammars,
    MaskMemory,
    Ready,
    ToGrammars,
    new_mask_memory,
)
from llmd.engine.grammars.worker import GrammarWorker
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.matcher import Matcher
from llmd.process.channel import Channel

VOCAB_SIZE, END = 129, 128
VOCABULARY = Vocabulary((*(bytes([value]) for value in range(128)), b"<end>"), (END,), (END,))
AB = Grammar("regex", "ab|ac")


class Engine:
    """The engine's side of a worker that runs in a thread."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        memory = new_mask_memory(4, VOCAB_SIZE)
        self._masks = MaskMemory(memory, VOCAB_SIZE)
        masks = MaskMemory(memory, VOCAB_SIZE)
        os.close(memory)
        self._sockets = ours, theirs
        self._channel = Channel(ours, cast("type[FromGrammars]", FromGrammars))
        channel = Channel(theirs, cast("type[ToGrammars]", ToGrammars))
        self._thread = threading.Thread(
            target=lambda: GrammarWorker(channel, VOCABULARY, VOCAB_SIZE, masks).serve()
        )
        self._thread.start()
        self._received: list[FromGrammars] = []

    def send(self, *messages: msgspec.Struct) -> None:
        for message in messages:
            self._channel.send(message)

    def receive(self) -> FromGrammars:
        while not self._received:
            self._received += self._channel.receive(wait=True)
        return self._received.pop(0)

    def allowed(self, *sequences: int, new: tuple[int, ...] = ()) -> list[str]:
        """Return the characters that may follow in each sequence after these new tokens."""
        self.send(Fill(tuple(BoundRow(one, (END,), new, False) for one in sequences)))
        assert self.receive() == Filled({})
        return ["".join(map(chr, ids(mask))) for mask in self._masks.first(len(sequences)).tolist()]

    def leave(self) -> None:
        self._sockets[0].close()
        self._thread.join()
        self._sockets[1].close()


def ids(mask: list[int]) -> list[int]:
    return [token for token in range(VOCAB_SIZE) if mask[token // 32] >> (token % 32) & 1]


@pytest.fixture
def engine() -> Iterator[Engine]:
    one = Engine()
    assert one.receive() == Ready()
    yield one
    one.leave()


def test_each_sequence_is_followed_by_itself(engine: Engine) -> None:
    engine.send(Compile(1, AB), Compile(2, AB, output=(ord("a"),)))
    assert [engine.receive(), engine.receive()] == [Compiled(1), Compiled(2)]
    assert engine.allowed(2, 1) == ["bc", "a"]
    engine.send(Fork(2, 3))
    assert engine.allowed(3, new=(ord("c"),)) == [chr(END)]
    assert engine.allowed(2) == ["bc"]


def test_it_says_why_a_grammar_or_a_token_cannot_be_followed(engine: Engine) -> None:
    engine.send(Compile(1, Grammar("regex", "(")))
    refused = engine.receive()
    assert isinstance(refused, Compiled)
    assert refused.sequence_id == 1
    assert "cannot be compiled" in refused.message
    assert refused.hint
    engine.send(Compile(2, AB), Fill((BoundRow(2, (END,), (ord("z"),), False),)))
    assert engine.receive() == Compiled(2)
    filled = engine.receive()
    assert isinstance(filled, Filled)
    assert list(filled.failed) == [0]


def test_what_has_left_is_not_compiled(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, whole, compiled = threading.Event(), GrammarCompiler.compile, []

    def compile_later(self: GrammarCompiler, grammar: Grammar) -> Matcher:
        go_on.wait(20.0)
        compiled.append(grammar.text)
        return whole(self, grammar)

    monkeypatch.setattr(GrammarCompiler, "compile", compile_later)
    engine.send(Compile(1, AB), Compile(2, Grammar("regex", "b")), Forget(2), Compile(3, AB), Fork(3, 4))
    go_on.set()
    assert [engine.receive(), engine.receive()] == [Compiled(1), Compiled(3)]
    assert engine.allowed(4) == ["a"]
    assert compiled == ["ab|ac", "ab|ac"]


def test_masks_are_filled_while_a_grammar_is_compiled(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.send(Compile(1, AB))
    assert engine.receive() == Compiled(1)
    go_on, whole = threading.Event(), GrammarCompiler.compile

    def compile_later(self: GrammarCompiler, grammar: Grammar) -> Matcher:
        go_on.wait(20.0)
        return whole(self, grammar)

    monkeypatch.setattr(GrammarCompiler, "compile", compile_later)
    engine.send(Compile(2, Grammar("regex", "b")))
    assert engine.allowed(1) == ["a"]
    go_on.set()
    assert engine.receive() == Compiled(2)


def test_a_process_that_cannot_compile_ends() -> None:
    """An error that no grammar caused:
    the engine sees that the process ended, and no request gets the error.
    """
    script = (
        "import sys; from llmd.engine.grammars import worker;"
        "worker.GrammarCompiler.compile = None; worker.main(*map(int, sys.argv[1:]))"
    )
    ours, theirs = socket.socketpair()
    memory, vocabulary = new_mask_memory(1, VOCAB_SIZE), os.memfd_create("vocabulary")
    os.write(vocabulary, msgspec.msgpack.encode(VOCABULARY))
    os.lseek(vocabulary, 0, os.SEEK_SET)
    descriptors = [theirs.fileno(), vocabulary, memory]
    command = [sys.executable, "-c", script, *map(str, descriptors), str(VOCAB_SIZE)]
    with ours, subprocess.Popen(command, pass_fds=descriptors, stderr=subprocess.PIPE) as process:
        theirs.close()
        os.close(memory)
        os.close(vocabulary)
        channel = Channel(ours, cast("type[FromGrammars]", FromGrammars))
        assert channel.receive_first() == Ready()
        channel.send(Compile(1, AB))
        assert channel.receive(wait=True) == []
        assert process.wait() == 1
