"""The engine's side of the grammar process."""

from __future__ import annotations

import os
import socket
import subprocess
import weakref
from collections.abc import Sequence
from typing import cast

import msgspec

from llmd.api.errors import EngineCrashedError
from llmd.api.messages import PackedVocabulary, Vocabulary
from llmd.engine.grammars.messages import (
    BoundRow,
    Compiled,
    Fill,
    Filled,
    FromGrammars,
    MaskMemory,
    Ready,
    new_mask_memory,
)
from llmd.grammar.masks import Masks
from llmd.process.channel import Channel
from llmd.process.worker import start_python

WORKER = "llmd.engine.grammars.worker"


class GrammarProcess:
    """``python -m llmd.engine.grammars.worker``.
    Only the engine loop's thread uses it; it blocks only for masks.

    A separate process, because llguidance holds the GIL while it loads a vocabulary, half a second for
    150,000 tokens: in a thread of the engine, that would stall every running stream.

    Every method raises `EngineCrashedError` once the process has exited by itself.
    """

    def __init__(self, vocabulary: Vocabulary | PackedVocabulary, vocab_size: int, max_rows: int) -> None:
        """Start the process, with room for the masks of ``max_rows`` rows."""
        masks = new_mask_memory(max_rows, vocab_size)
        try:
            self._masks = MaskMemory(masks, vocab_size)
            self._socket, self._process = _start(vocabulary, masks, vocab_size)
        finally:
            os.close(masks)
        # Also ends the process if the engine is dropped without being closed.
        self._end = weakref.finalize(self, _end, self._process, self._socket)
        self._channel = Channel(self._socket, cast("type[FromGrammars]", FromGrammars))
        self._unsent: list[msgspec.Struct] | None = []
        self._compiled: list[Compiled] = []
        self._filling = False
        self._filled: Filled | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, message: msgspec.Struct) -> None:
        """Send a message that has no reply, or a `Compile`, whose reply `compiled` returns."""
        if self._unsent is None:
            self._send(message)
        else:
            # The process reads nothing until it has loaded the vocabulary,
            # and a full socket would block the loop.
            self._unsent.append(message)

    def compiled(self) -> list[Compiled]:
        """Return the results that have arrived for grammars, without waiting."""
        self._receive(wait=False)
        compiled, self._compiled = self._compiled, []
        return compiled

    def wait(self, timeout_s: float) -> None:
        """Wait for a message from the process, for at most ``timeout_s`` seconds."""
        if not self._compiled:
            self._channel.wait(timeout_s)

    def fill(self, rows: Sequence[BoundRow]) -> None:
        """Start to fill the masks of rows; pending masks that were not taken with `filled` are dropped."""
        if self._filling:
            self.filled(0)
        self._send(Fill(tuple(rows)))
        self._filling = True

    def filled(self, count: int) -> tuple[Masks, dict[int, str]]:
        """Wait for the masks of the last `fill`; they are valid until the next `fill`.

        Also returns the rows without a mask, by index, with the reason.
        """
        while (filled := self._filled) is None:
            self._receive(wait=True)
        self._filling, self._filled = False, None
        return self._masks.first(count), filled.failed

    def end(self) -> None:
        self._end()

    def _send(self, message: msgspec.Struct) -> None:
        try:
            self._channel.send(message)
        except ConnectionError as error:
            raise self._lost() from error

    def _receive(self, *, wait: bool) -> None:
        try:
            messages = self._channel.receive(wait=wait)
        except ConnectionError as error:
            raise self._lost() from error
        for message in messages:
            self._take(message)
        if self._channel.closed:
            raise self._lost()

    def _take(self, message: FromGrammars) -> None:
        match message:
            case Ready():
                unsent, self._unsent = self._unsent or [], None
                for one in unsent:
                    self._send(one)
            case Compiled():
                self._compiled.append(message)
            case Filled():
                self._filled = message

    def _lost(self) -> EngineCrashedError:
        self._end()
        return EngineCrashedError(
            f"the grammar process exited with status {self._process.returncode}",
            hint="see the log; load the model again",
        )


def _start(
    vocabulary: Vocabulary | PackedVocabulary, masks: int, vocab_size: int
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    with os.fdopen(os.memfd_create("vocabulary"), "wb") as file:
        file.write(msgspec.msgpack.encode(vocabulary))
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = [theirs.fileno(), file.fileno(), masks]
            arguments = [*map(str, descriptors), str(vocab_size)]
            process = start_python(WORKER, arguments, descriptors=descriptors)
    return ours, process


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.kill()
    process.wait()
