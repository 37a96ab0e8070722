"""The process that test-compiles grammars: ``python -m llmd.chat.grammars.check_worker MEMORY_BYTES``.

A schema of a hundred bytes can keep a compiler busy for hours (``multipleOf`` of a large prime). If a grammar
does not compile in time, this process is killed and the grammar never reaches an engine.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import GrammarError
from llmd.api.messages import Vocabulary
from llmd.chat.grammars.check_messages import Checked, CheckJob
from llmd.grammar.compiler import GrammarCompiler
from llmd.process.serve import serve

_NUM_BYTES = 256


def answer(payload: bytes) -> bytes:
    """Return the packed reply to a packed `CheckJob`."""
    return msgspec.msgpack.encode(check(msgspec.msgpack.decode(payload, type=prepared(CheckJob))))


def check(job: CheckJob) -> Checked:
    """Compile a grammar for a vocabulary of single bytes; longer tokens do not affect whether it compiles."""
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


if __name__ == "__main__":
    serve(answer, memory_bytes=int(sys.argv[1]))
