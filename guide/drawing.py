"""Draws blocks of training text in processes of their own, ahead of the trainer."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tokenizers import Tokenizer

from guide.batches import Batch, block
from guide.corpus import Corpus
from guide.decontamination import Heldout, wordings
from guide.plan import Plan
from guide.tokens import Encoder
from guide.topics import load

AHEAD = 2  # blocks that each process may have drawn before they are asked for


def drawn(tokenizer: Path, plan: Plan, first: int, processes: int) -> Generator[list[Batch]]:
    """The blocks from number ``first`` on, in order and without end."""
    # Not forked: the trainer's process has threads, and a GPU that a child cannot use.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        numbers, waiting = count(first), deque[Future[list[Batch]]]()
        try:
            while True:
                while len(waiting) < AHEAD * processes:
                    waiting.append(pool.submit(_block, tokenizer, plan, next(numbers)))
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _block(tokenizer: Path, plan: Plan, number: int) -> list[Batch]:
    return block(_corpus(plan.tools_share), _encoder(tokenizer, plan.bpe_dropout), number, plan)


@cache
def _corpus(tools_share: float) -> Corpus:
    return Corpus(load(), Heldout(wordings()), tools_share)


@cache
def _encoder(tokenizer: Path, dropout: float) -> Encoder:
    return Encoder(Tokenizer.from_file(str(tokenizer)), dropout)
