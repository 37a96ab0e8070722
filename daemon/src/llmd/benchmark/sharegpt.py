"""Prompts from a file of conversations in ShareGPT's format.

The file is a JSON list of ``{"conversations": [{"from": …, "value": TEXT}, …]}``. The first text of a
conversation is the prompt; the length of the second is the length of the answer.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
from msgspec import Struct

from llmd.api.decoding import prepared
from llmd.api.errors import ConfigError
from llmd.benchmark.load import Sample
from llmd.chat.tokenizers.tokenizer import Tokenizer

# vLLM's limits, so that results are comparable.
MIN_LEN = 4
MAX_PROMPT_LEN = 1024
MAX_TOTAL_LEN = 2048


class _Turn(Struct, frozen=True):
    value: str


class _Conversation(Struct, frozen=True):
    conversations: tuple[_Turn, ...] = ()


def sharegpt_samples(
    path: Path, tokenizer: Tokenizer, count: int, seed: int, *, output_len: int | None = None
) -> list[Sample]:
    """Return samples from a file in random order, the same for the same seed; repeated if there are too few.

    ``output_len`` replaces the lengths of the file's answers. Conversations are skipped if the prompt or the
    answer has fewer than 4 tokens, the prompt more than 1024, or both together more than 2048.

    Raises:
        ConfigError: the file has another format, or no usable conversation.
        OSError: it cannot be read.
    """
    rng = random.Random(seed)
    pairs = _pairs(path)
    rng.shuffle(pairs)
    samples: list[Sample] = []
    for prompt, answer in pairs:
        if len(samples) == count:
            break
        prompt_len = len(tokenizer.encode(prompt, parse_special=False))
        answer_len = output_len or len(tokenizer.encode(answer, parse_special=False))
        if _is_usable(prompt_len, answer_len, is_given=output_len is not None):
            samples.append(Sample(prompt, prompt_len, answer_len))
    if not samples:
        raise ConfigError(
            f"{path} has no conversation with two turns of usable length",
            hint=f"prompts and answers need at least {MIN_LEN} tokens, prompts at most {MAX_PROMPT_LEN}",
        )
    return samples + rng.choices(samples, k=count - len(samples))


def _pairs(path: Path) -> list[tuple[str, str]]:
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=prepared(list[_Conversation]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not a list of conversations: {error}",
            hint='ShareGPT\'s format is [{"conversations": [{"from": "human", "value": "…"}, …]}, …]',
        ) from error
    turns = (entry.conversations for entry in entries)
    return [(talk[0].value, talk[1].value) for talk in turns if len(talk) > 1]


def _is_usable(prompt_len: int, answer_len: int, *, is_given: bool) -> bool:
    if prompt_len < MIN_LEN or (answer_len < MIN_LEN and not is_given):
        return False
    return prompt_len <= MAX_PROMPT_LEN and prompt_len + answer_len <= MAX_TOTAL_LEN
