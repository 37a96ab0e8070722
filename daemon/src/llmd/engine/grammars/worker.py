"""The grammar process of an engine: ``python -m llmd.engine.grammars.worker SOCKET VOCABULARY MASKS SIZE``.

The first three arguments are inherited file descriptors: a socket, the vocabulary as msgpack, and the shared
memory for masks. SIZE is the number of tokens. The process ends when the engine does.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import GrammarError
from llmd.api.messages import Vocabulary
from llmd.engine.grammars.messages import (
    Compile,
    Compiled,
    Fill,
    Filled,
    Forget,
    Fork,
    MaskMemory,
    Ready,
    ToGrammars,
)
from llmd.engine.log_lines import log_to_stderr
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow
from llmd.grammar.matcher import Matcher
from llmd.process.channel import Channel

MASK_THREADS = 4
# Every running stream waits for masks, so the thread that fills them must get the GIL back quickly from the
# thread that compiles grammars.
_SWITCH_INTERVAL_S = 1e-4

log = logging.getLogger(__name__)


def main(socket_fd: int, vocabulary_fd: int, masks_fd: int, vocab_size: int) -> None:
    """Serve until the engine has ended."""
    # Ctrl-C in a terminal reaches both processes, but the engine decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_to_stderr()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with os.fdopen(vocabulary_fd, "rb") as file:
        vocabulary = msgspec.msgpack.decode(file.read(), type=prepared(Vocabulary))
    with socket.socket(fileno=socket_fd) as sock:
        channel = Channel(sock, cast("type[ToGrammars]", ToGrammars))
        GrammarWorker(channel, vocabulary, vocab_size, MaskMemory(masks_fd, vocab_size)).serve()
    # Do not wait for a grammar that is being compiled:
    # a restart of the engine waits until all its processes have ended.
    os._exit(0)


class GrammarWorker:
    """Compiles in a second thread, so that a slow grammar delays only
    requests that wait for their own grammar.
    """

    def __init__(
        self, channel: Channel[ToGrammars], vocabulary: Vocabulary, vocab_size: int, masks: MaskMemory
    ) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._masks = masks
        self._compiler = GrammarCompiler(vocabulary, vocab_size)
        self._filler = MaskFiller(vocab_size, MASK_THREADS)
        self._compiling = ThreadPoolExecutor(1, "grammars")
        self._matchers: dict[int, Future[Matcher]] = {}

    def serve(self) -> None:
        """Handle the engine's messages until it has ended."""
        try:
            self._send(Ready())
            while not self._channel.closed:
                for message in self._channel.receive(wait=True):
                    self._handle(message)
        except ConnectionError:
            log.info("engine_gone")
        finally:
            self._compiling.shutdown(wait=False, cancel_futures=True)

    def _handle(self, message: ToGrammars) -> None:
        match message:
            case Compile(sequence_id=sequence_id):
                self._matchers[sequence_id] = self._compiling.submit(self._compile, message)
            case Fork(parent_id=parent_id, child_id=child_id):
                child: Future[Matcher] = Future()
                child.set_result(self._matchers[parent_id].result().fork())
                self._matchers[child_id] = child
            case Forget(sequence_id=sequence_id):
                self._matchers.pop(sequence_id).cancel()
            case Fill():
                self._send(Filled(self._fill(message)))

    def _compile(self, message: Compile) -> Matcher:
        """Return a matcher that has accepted the answer's existing output,
        and report the result to the engine.
        """
        reply = Compiled(message.sequence_id)
        try:
            matcher = self._compiler.compile(message.grammar)
            matcher.accept(message.output)
        except GrammarError as error:
            reply = Compiled(message.sequence_id, error.message, error.hint)
            raise
        except BaseException:
            log.exception("grammar_not_compiled")
            os._exit(1)  # the engine notices and restarts
        finally:
            self._send(reply)
        return matcher

    def _fill(self, message: Fill) -> dict[int, str]:
        rows: list[MaskRow] = []
        last: dict[int, MaskRow] = {}  # the row of each sequence's own tokens
        for row in message.rows:
            if row.is_draft:
                own = last[row.sequence_id]
                copy, tokens = own.matcher.fork(), (*own.new, *row.new)
                rows.append(MaskRow(copy, row.stop_ids, tokens, row.longer))
            else:
                matcher = self._matchers[row.sequence_id].result()
                rows.append(MaskRow(matcher, row.stop_ids, row.new, row.longer))
                last[row.sequence_id] = rows[-1]
        masks, failed = self._filler.fill(rows)
        self._masks.first(len(rows))[:] = masks
        return {place: reason for place, reason in failed.items() if not message.rows[place].is_draft}

    def _send(self, message: msgspec.Struct) -> None:
        with self._sending:
            self._channel.send(message)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
