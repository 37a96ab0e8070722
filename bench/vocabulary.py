"""A vocabulary for random models that both sides tokenize the same way: byte-level BPE over sequences of
letters.

After the 256 bytes there are pairs, triples and quadruples of letters, each a merge of the sequence without
its last letter and that letter. The last id ends a turn. Any text can be tokenized, and every token except
the last is text.
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
    """Return byte-level BPE's character for each byte: itself if printable, else one from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def merges(size: int) -> list[tuple[str, str]]:
    """Return the merges of a vocabulary of that size, in the order of the tokens that they make."""
    return list(islice(_merges(), size - NUM_BYTES - 1))


def _merges() -> Iterator[tuple[str, str]]:
    for length in range(1, 4):
        for letters in product(ascii_letters, repeat=length):
            yield from (("".join(letters), last) for last in ascii_letters)


def tokens(size: int) -> list[str]:
    """Return all tokens of a vocabulary of that size, in byte-level BPE's characters."""
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
