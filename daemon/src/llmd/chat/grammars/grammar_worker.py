"""The process in which grammars are tried: ``python -m llmd.chat.grammars.grammar_worker MEMORY_BYTES``.

A schema of a hundred bytes can keep a compiler busy for hours (``multipleOf`` of a large prime). What does not end here
in time is ended with its process, and never reaches an engine.
"""

from __future__ import annotations

import resource
import signal
import sys
from functools import lru_cache
from typing import IO

import msgspec

from llmd.api.errors import GrammarError
from llmd.api.messages import Vocabulary
from llmd.chat.grammars.grammar_frames import Checked, CheckJob
from llmd.chat.helper_process import HEADER_BYTES, framed
from llmd.grammar.compiler import GrammarCompiler

# The front ends what takes too long. If the front itself has died, this many seconds end it.
_ORPHAN_LIMIT_S = 60
_NUM_BYTES = 256


def main(memory_bytes: int) -> None:
    """Serve jobs until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jobs, replies = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.msgpack.Decoder(CheckJob)
    _send(replies, b"")
    while header := jobs.read(HEADER_BYTES):
        job = decoder.decode(jobs.read(int.from_bytes(header, "little")))
        signal.alarm(_ORPHAN_LIMIT_S)
        reply = check(job)
        signal.alarm(0)
        _send(replies, msgspec.msgpack.encode(reply))


def check(job: CheckJob) -> Checked:
    """Compile a grammar for a vocabulary of single bytes: what it may be does not depend on longer tokens."""
    try:
        _compiler(job.control_ids).compile(job.grammar)
    except GrammarError as error:
        return Checked(error.message, error.hint)
    return Checked()


@lru_cache(maxsize=8)
def _compiler(control_ids: tuple[int, ...]) -> GrammarCompiler:
    taken = frozenset(control_ids)
    size = max(control_ids, default=0) + _NUM_BYTES + 1
    tokens = [b""] * size
    free = (token_id for token_id in range(size) if token_id not in taken)
    for value, token_id in zip(range(_NUM_BYTES), free, strict=False):
        tokens[token_id] = bytes([value])
    for token_id in control_ids:
        tokens[token_id] = b"<%d>" % token_id
    return GrammarCompiler(Vocabulary(tuple(tokens), control_ids), size)


def _send(replies: IO[bytes], payload: bytes) -> None:
    replies.write(framed(payload))
    replies.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
