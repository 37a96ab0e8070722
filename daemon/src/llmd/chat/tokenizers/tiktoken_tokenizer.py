"""``tokenizer.model`` in tiktoken's format, as published for Llama 3: lines of base64 bytes and a rank."""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import msgspec
import tiktoken

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.tokenizer import Tokenizer, Vocabulary
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig
from llmd.chat.tokenizers.word_patterns import LLAMA3

# Patterns backtrack over runs of spaces or other characters and fail at about a million: split long runs.
MAX_RUN_LEN = 25_000
_RUN = re.compile(rf"\s{{1,{MAX_RUN_LEN}}}|\S{{1,{MAX_RUN_LEN}}}")

# Special tokens of Llama 3.1 in id order, from the first id after the ranks; 256 with the reserved ones.
_LLAMA3_NAMES = (
    "begin_of_text", "end_of_text", "reserved_special_token_0", "reserved_special_token_1", "finetune_right_pad_id",
    "reserved_special_token_2", "start_header_id", "end_header_id", "eom_id", "eot_id", "python_tag",
)  # fmt: skip
_NUM_LLAMA3_SPECIALS = 256


class TiktokenTokenizer(Tokenizer):
    """Byte-level BPE by rank, run by tiktoken. ``pattern`` splits text into words before merging.

    Raises:
        TokenizerError: the pattern is invalid.
    """

    def __init__(self, vocabulary: Vocabulary, ranks: dict[bytes, int], path: Path, pattern: str) -> None:
        super().__init__(vocabulary)
        specials = {token.text: token.token_id for token in vocabulary.specials}
        try:
            self._encoding = tiktoken.Encoding(
                "model", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
            )
        except ValueError as exc:
            raise TokenizerError(
                f"{path}: the pattern cannot be used: {exc}", hint="copy the file again from its model"
            ) from exc
        self._specials = specials
        self._special_texts = frozenset(specials)
        self.ranks: Mapping[bytes, int] = ranks
        self.pattern = pattern

    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        allowed = self._special_texts if parse_special else frozenset[str]()
        parts = _cut_long_runs(text) if len(text) > MAX_RUN_LEN else [text]
        return [
            token_id
            for part in parts
            for token_id in self._encoding.encode(part, allowed_special=allowed, disallowed_special=())
        ]

    def token_bytes(self, token_id: int) -> bytes:
        try:
            return self._encoding.decode_single_token_bytes(token_id)
        except (KeyError, OverflowError):
            return b""

    def token_id(self, text: str) -> int | None:
        return self._specials.get(text, self.ranks.get(text.encode()))


def looks_like_tiktoken(content: bytes) -> bool:
    """Return whether the first line is base64 and a number."""
    return re.match(rb"[A-Za-z0-9+/]+={0,2} \d+(\r?\n|$)", content) is not None


def load_tiktoken(
    path: Path, content: bytes, config: TokenizerConfig, *, pattern: str = LLAMA3, adds_bos: bool = True
) -> TiktokenTokenizer:
    """Load a tokenizer in tiktoken's format; special tokens are Llama 3's unless ``config`` lists others.

    ``pattern`` splits text into words; BOS begins texts if ``adds_bos``, unless ``config`` says otherwise.

    Raises:
        TokenizerError: a line is damaged, a rank or token occurs twice, or a byte has no token.
    """
    ranks = _read_ranks(path, content)
    specials = _specials(ranks, config)
    check_ids(path, ranks, {token.text: token.token_id for token in specials})
    if config.add_bos is None:
        config = msgspec.structs.replace(config, add_bos=adds_bos)
    vocabulary = describe(path, ranks, specials, config, bos="<|begin_of_text|>", eos="<|end_of_text|>")
    return TiktokenTokenizer(vocabulary, ranks, path, pattern)


def describe(
    path: Path,
    ranks: Mapping[bytes, int],
    specials: tuple[SpecialToken, ...],
    config: TokenizerConfig,
    *,
    bos: str,
    eos: str,
) -> Vocabulary:
    """Return the vocabulary of ``ranks`` and ``specials``; ``config`` overrides ``bos`` and ``eos``.

    Raises:
        TokenizerError: ``config`` names a token that does not exist.
    """
    ids = {token.text: token.token_id for token in specials}
    bos_id = _role_id(path, config, "bos_token", bos, ids)
    eos_id = _role_id(path, config, "eos_token", eos, ids)
    return Vocabulary(
        size=max([*ranks.values(), *ids.values()]) + 1,
        bos_id=bos_id,
        eos_ids=() if eos_id is None else (eos_id,),
        prefix_ids=() if bos_id is None or config.add_bos is False else (bos_id,),
        suffix_ids=(eos_id,) if config.add_eos and eos_id is not None else (),
        specials=specials,
    )


def _read_ranks(path: Path, content: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line:
            continue
        try:
            encoded, rank = line.split()
            token = base64.b64decode(encoded, validate=True)
            number_of_others = len(ranks)
            ranks[token] = int(rank)
        except ValueError as exc:
            raise TokenizerError(
                f"{path}, line {number}: {line[:60]!r} is not base64 and a rank",
                hint="the file is damaged or truncated; copy it again from its model",
            ) from exc
        if len(ranks) == number_of_others:
            raise TokenizerError(f"{path}, line {number}: the token occurs twice", hint="copy the file again")
    check_ranks(path, ranks)
    return ranks


def check_ranks(path: Path, ranks: Container[bytes]) -> None:
    """Raise `TokenizerError` if a byte has no token."""
    missing = next((byte for byte in range(256) if bytes([byte]) not in ranks), None)
    if missing is not None:
        raise TokenizerError(
            f"{path} has no token for byte {missing:#04x}", hint="the file is truncated; copy it again"
        )


def _specials(ranks: dict[bytes, int], config: TokenizerConfig) -> tuple[SpecialToken, ...]:
    if config.added:
        return tuple(
            SpecialToken(token.content, token_id) for token_id, token in sorted(config.added.items())
        )
    reserved = (f"reserved_special_token_{place}" for place in range(3, _NUM_LLAMA3_SPECIALS))
    names = [*_LLAMA3_NAMES, *reserved][:_NUM_LLAMA3_SPECIALS]
    first_id = max(ranks.values()) + 1
    return tuple(SpecialToken(f"<|{name}|>", first_id + place) for place, name in enumerate(names))


def check_ids(path: Path, ranks: Mapping[bytes, int], specials: Mapping[str, int]) -> None:
    """Raise `TokenizerError` if tokens share an id or an id is negative or above int32."""
    ids = [*ranks.values(), *specials.values()]
    if len(set(ids)) != len(ids) or min(ids) < 0 or max(ids) >= 1 << 31:
        raise TokenizerError(
            f"{path}: {len(ids)} tokens share {len(set(ids))} ids from {min(ids)} to {max(ids)}",
            hint="every rank and added token needs a unique id from 0 on; copy the tokenizer files again",
        )


def _role_id(path: Path, config: TokenizerConfig, key: str, default: str, ids: dict[str, int]) -> int | None:
    text = config.name(key)
    if text is not None and text not in ids:
        raise TokenizerError(
            f"{path.parent}: {key} is {text!r}, which is not among the added tokens of {path.name}",
            hint="correct tokenizer_config.json or copy the tokenizer files from the same model",
        )
    return ids.get(text or default)


def _cut_long_runs(text: str) -> Iterator[str]:
    """Split ``text``, but only inside runs of whitespace or other characters beyond `MAX_RUN_LEN`."""
    start = 0
    for run in _RUN.finditer(text):
        cut = run.end()
        if (
            cut - run.start() == MAX_RUN_LEN
            and cut < len(text)
            and text[cut].isspace() == text[cut - 1].isspace()
        ):
            yield text[start:cut]
            start = cut
    yield text[start:]
