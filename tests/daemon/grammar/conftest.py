"""A vocabulary of bytes, some longer texts and control tokens, and helpers that run grammars over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from llmd.api.messages import Grammar, Vocabulary
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow
from llmd.grammar.matcher import Matcher

VOCAB_SIZE = 270
LONGER = (b'{"', b'": ', b"yes", b"\xf0\x9f")
END, OPEN, CLOSE = 260, 261, 262
VOCABULARY = Vocabulary(
    (*(bytes([value]) for value in range(256)), *LONGER, b"<end>", b"<think>", b"</think>"),
    special_ids=(END, OPEN, CLOSE),
    end_ids=(END,),
)

Follow = Callable[[Grammar, str | Sequence[int]], bool]
Allowed = Callable[..., list[int]]


@pytest.fixture(scope="session")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(VOCABULARY, VOCAB_SIZE)


@pytest.fixture(scope="session")
def filler() -> MaskFiller:
    return MaskFiller(VOCAB_SIZE, num_threads=2)


@pytest.fixture(scope="session")
def allowed(filler: MaskFiller) -> Allowed:
    """Return the ids that a matcher allows next."""

    def ids(matcher: Matcher, **row: object) -> list[int]:
        masks, failed = filler.fill([MaskRow(matcher, **{"stop_ids": (END,), **row})])  # type: ignore[arg-type]
        assert not failed
        bits = np.unpackbits(masks.view(np.uint8), bitorder="little")
        found: list[int] = np.flatnonzero(bits).tolist()
        return found

    return ids


@pytest.fixture(scope="session")
def follow(compiler: GrammarCompiler, allowed: Allowed) -> Follow:
    """Return whether a grammar accepts a text, byte by byte (or ids), as a whole answer."""

    def takes(grammar: Grammar, answer: str | Sequence[int]) -> bool:
        matcher = compiler.compile(grammar)
        for token in answer.encode() if isinstance(answer, str) else answer:
            if token not in allowed(matcher):
                return False
            matcher.accept([token])
        return END in allowed(matcher)

    return takes
