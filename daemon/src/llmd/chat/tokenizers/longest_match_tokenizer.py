"""The tokenizer of RWKV's models: at each place of a text, the longest token that fits.

Its file ``rwkv_vocab_DATE.txt`` has a line for each token: the id, the token as a Python literal of text or
bytes, and its length in bytes. Id 0, which is not in the file, begins and ends texts.

Source: Peng et al. 2024, "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic Recurrence", section 5.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import read_file
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.tiktoken_tokenizer import check_ids, check_ranks
from llmd.chat.tokenizers.tokenizer import Tokenizer, Vocabulary
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig

FILES = "rwkv_vocab_*.txt"
WORLD_FILE = "rwkv_vocab_v20230424.txt"
"""The only date that is published."""
END = SpecialToken("<|rwkv_tokenizer_end_of_text|>", 0)
"""The token with id 0, if a configuration names none."""
_HINT = "the file is damaged or truncated; copy it again from its model"


class LongestMatchTokenizer(Tokenizer):
    """Takes the longest token at each place. ``ids`` has the tokens that text consists of, and all bytes."""

    def __init__(self, vocabulary: Vocabulary, ids: Mapping[bytes, int]) -> None:
        super().__init__(vocabulary)
        self.ids = ids
        self._bytes = {token_id: token for token, token_id in ids.items()}
        self._bytes |= {token.token_id: token.text.encode() for token in vocabulary.specials}
        self._specials = {token.text: token.token_id for token in vocabulary.specials}
        self._lengths = _lengths(ids)

    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        if not parse_special:
            return list(self._matches(text.encode()))
        ids: list[int] = []
        for piece in self.specials.split(text):
            ids += self._matches(piece.text.encode()) if piece.token is None else [piece.token.token_id]
        return ids

    def _matches(self, content: bytes) -> Iterator[int]:
        place = 0
        while place < len(content):
            for length in self._lengths[content[place : place + 2]]:
                token = content[place : place + length]
                if token in self.ids:
                    break
            yield self.ids[token]
            place += len(token)

    def token_bytes(self, token_id: int) -> bytes:
        return self._bytes.get(token_id, b"")

    def token_id(self, text: str) -> int | None:
        return self._specials.get(text, self.ids.get(text.encode()))


class _Lengths(dict[bytes, tuple[int, ...]]):
    """Lengths of tokens by their first two bytes, the longest first; a byte where nothing longer begins."""

    def __missing__(self, key: bytes) -> tuple[int, ...]:
        return (1,)


def _lengths(ids: Mapping[bytes, int]) -> _Lengths:
    found: dict[bytes, set[int]] = {}
    for token in ids:
        if len(token) > 1:
            found.setdefault(token[:2], {1}).add(len(token))
    return _Lengths({start: tuple(sorted(lengths, reverse=True)) for start, lengths in found.items()})


def vocabulary_file(ids: Mapping[bytes, int]) -> bytes:
    """Return the content of a file with these tokens."""
    lines = (f"{place} {_literal(token)} {len(token)}\n" for token, place in ids.items())
    return "".join(lines).encode()


def _literal(token: bytes) -> str:
    """Return a token as a Python literal of text, or of bytes that are no text."""
    try:
        return repr(token.decode())
    except UnicodeDecodeError:
        return repr(token)


def load_longest_match(path: Path, config: TokenizerConfig) -> LongestMatchTokenizer:
    """Load the tokenizer of a file. Added tokens of ``config`` are special, and id 0 is in any case.

    Raises:
        TokenizerError: a line is damaged, an id or token occurs twice, a byte has no token, or ``config``
            names a token that does not exist.
    """
    every = _read_ids(path)
    texts = {END.token_id: END.text} | {place: token.content for place, token in config.added.items()}
    specials = tuple(SpecialToken(text, place) for place, text in sorted(texts.items()))
    # Empty lines end answers in some models, but separate paragraphs of prompts as well.
    apart = {text.encode() for text in texts.values() if text.strip()}
    ids = {token: place for token, place in every.items() if token not in apart}
    check_ranks(path, ids)
    words = {token: place for token, place in ids.items() if texts.get(place, "").encode() != token}
    check_ids(path, words, {token.text: token.token_id for token in specials})
    return LongestMatchTokenizer(_vocabulary(path, config, specials, ids), ids)


def _vocabulary(
    path: Path, config: TokenizerConfig, specials: tuple[SpecialToken, ...], ids: Mapping[bytes, int]
) -> Vocabulary:
    special_ids = {token.text: token.token_id for token in specials}

    def role(key: str) -> int:
        text = config.name(key)
        found = END.token_id if text is None else special_ids.get(text, ids.get(text.encode()))
        if found is None:
            raise TokenizerError(
                f"{path.parent}: {key} is {text!r}, which is not a token of {path.name}",
                hint="correct tokenizer_config.json or copy the tokenizer files from the same model",
            )
        return found

    bos_id, eos_id = role("bos_token"), role("eos_token")
    return Vocabulary(
        size=max([*ids.values(), *special_ids.values()]) + 1,
        bos_id=bos_id,
        eos_ids=(eos_id,),
        prefix_ids=(bos_id,) if config.add_bos else (),
        suffix_ids=(eos_id,) if config.add_eos else (),
        specials=specials,
    )


def _read_ids(path: Path) -> dict[bytes, int]:
    ids: dict[bytes, int] = {}
    # Only line feeds end lines: tokens of other separators are in the file as they are.
    for number, line in enumerate(
        read_file(path, error=TokenizerError).decode("utf-8", "replace").split("\n"), 1
    ):
        if not line.strip():
            continue
        token, place = _read_line(line) or _refuse(path, number, line)
        if token in ids:
            raise TokenizerError(f"{path}, line {number}: the token occurs twice", hint=_HINT)
        ids[token] = place
    return ids


def _read_line(line: str) -> tuple[bytes, int] | None:
    """Return the token and its id; None if the line is damaged."""
    place, _, rest = line.strip().partition(" ")
    literal, _, length = rest.rpartition(" ")
    if not (place.isdecimal() and length.isdecimal()):
        return None
    try:
        token = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return None
    content = token.encode() if isinstance(token, str) else token
    is_whole = isinstance(content, bytes) and len(content) == int(length) > 0
    return (content, int(place)) if is_whole else None


def _refuse(path: Path, number: int, line: str) -> NoReturn:
    raise TokenizerError(
        f"{path}, line {number}: {line[:60]!r} is not an id, a token and its length", hint=_HINT
    )
