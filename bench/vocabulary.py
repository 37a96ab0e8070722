"""A vocabulary for random models that both sides read alike: byte-level BPE over syllables of letters.

After the 256 bytes come pairs of letters, then triples, then fours, each the merge of what stands before its last letter
with that letter; the last id is the end of a turn. Text of any kind has tokens, and every token but that one is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from string import ascii_letters

END = "<|end|>"
NUM_BYTES = 256


def byte_signs() -> list[str]:
    """The character that byte-level BPE writes for each byte: itself where printable, else one from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def merges(size: int) -> list[tuple[str, str]]:
    """The merges of a vocabulary of a size, in order; each makes the token after those before it."""
    return list(islice(_merges(), size - NUM_BYTES - 1))


def _merges() -> Iterator[tuple[str, str]]:
    for length in range(1, 4):
        for letters in product(ascii_letters, repeat=length):
            yield from (("".join(letters), last) for last in ascii_letters)


def tokens(size: int) -> list[str]:
    """Every token of a vocabulary of a size, as byte-level BPE writes it."""
    return [*byte_signs(), *(left + right for left, right in merges(size)), END]


def write_tokenizer(size: int, directory: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {
        "id": size - 1,
        "content": END,
        "special": True,
        "normalized": False,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
    }
    content = {
        "version": "1.0",
        "added_tokens": [end],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: place for place, token in enumerate(tokens(size)[:-1])},
            "merges": [list(merge) for merge in merges(size)],
        },
    }
    (directory / "tokenizer.json").write_text(json.dumps(content))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": END}))
