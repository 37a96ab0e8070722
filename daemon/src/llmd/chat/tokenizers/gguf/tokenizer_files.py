"""Convert the tokenizer of a GGUF file to the files of a model directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from llmd.chat.tokenizers.gguf.byte_pairs import find_pre_tokenizer, load_byte_pairs
from llmd.chat.tokenizers.gguf.escaped_bytes import load_escaped_bytes, unescaped
from llmd.chat.tokenizers.gguf.pieces import read_pieces
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, read_vocabulary
from llmd.chat.tokenizers.longest_match_tokenizer import WORLD_FILE, vocabulary_file
from llmd.chat.tokenizers.tokenizer import Vocabulary
from llmd.models.gguf.fields import token_ids

Files = dict[str, bytes]
Json = dict[str, Any]

ROLES = {"pad_token": "padding", "unk_token": "unknown"}
"""Names of tokens in tokenizer_config.json, and in GGUF keys."""
_NAMES_OF_SEQUENCES = ("A", "B")


def tokenizer_files(metadata: Mapping[str, Any], file: str) -> Files:
    """Return ``tokenizer_config.json``, and ``tokenizer.json`` or, for SentencePiece, ``tokenizer.model`` or,
    for RWKV, ``rwkv_vocab_DATE.txt``.

    The files contain the tokenizers that `llmd.chat.tokenizers.gguf.gguf_tokenizer` runs.

    Raises:
        TokenizerError: the vocabulary is damaged, or of a kind that no generative model has.
    """
    stated = read_vocabulary(metadata, file)
    match stated.model:
        case "gpt2" | "gemma4":
            vocabulary, files, config = _of_byte_pairs(stated)
        case "llama" | "t5":
            vocabulary, files, config = _of_pieces(stated)
        case "rwkv":
            vocabulary, files, config = _of_bytes(stated)
        case other:
            raise stated.error(
                f"tokenizer.ggml.model is {other!r}, which cannot be written as files",
                "keep the model as a GGUF file; llmd can serve it as it is",
            )
    named = {"bos_token": vocabulary.bos_id, "eos_token": next(iter(vocabulary.eos_ids), None)}
    named |= {name: next(iter(token_ids(metadata, role)), None) for name, role in ROLES.items()}
    config |= {name: _text(stated, place) for name, place in named.items() if _text(stated, place)}
    config |= {
        "add_bos_token": bool(vocabulary.prefix_ids),
        "add_eos_token": bool(vocabulary.suffix_ids),
        "clean_up_tokenization_spaces": False,
    }
    return {**files, "tokenizer_config.json": json.dumps(config, indent=2, ensure_ascii=False).encode()}


def _text(stated: GgufVocabulary, place: int | None) -> str:
    text = stated.tokens[place] if place is not None and 0 <= place < len(stated.tokens) else ""
    return unescaped(stated, text).decode("utf-8", "replace") if stated.model == "rwkv" else text


def _of_byte_pairs(stated: GgufVocabulary) -> tuple[Vocabulary, Files, Json]:
    tokenizer = load_byte_pairs(stated)
    form = tokenizer.form()
    form["decoder"] = (
        _spaced_decoder() if find_pre_tokenizer(stated).spaced else {"type": "ByteLevel", **_BYTE_LEVEL}
    )
    form["post_processor"] = _template(stated, tokenizer.vocabulary)
    content = json.dumps(form, ensure_ascii=False).encode()
    return tokenizer.vocabulary, {"tokenizer.json": content}, {"tokenizer_class": "PreTrainedTokenizerFast"}


_BYTE_LEVEL = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def _spaced_decoder() -> Json:
    space = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    return {"type": "Sequence", "decoders": [space, {"type": "ByteFallback"}, {"type": "Fuse"}]}


def _template(stated: GgufVocabulary, vocabulary: Vocabulary) -> Json | None:
    """Return the post-processor for one text and for pairs; None if it adds no tokens."""
    around = {_text(stated, place): place for place in (*vocabulary.prefix_ids, *vocabulary.suffix_ids)}
    if not around:
        return None
    parts = [
        [
            *(_special(stated, place, kind) for place in vocabulary.prefix_ids),
            {"Sequence": {"id": name, "type_id": kind}},
            *(_special(stated, place, kind) for place in vocabulary.suffix_ids),
        ]
        for kind, name in enumerate(_NAMES_OF_SEQUENCES)
    ]
    return {
        "type": "TemplateProcessing",
        "single": parts[0],
        "pair": parts[0] + parts[1],
        "special_tokens": {
            text: {"id": text, "ids": [place], "tokens": [text]} for text, place in around.items()
        },
    }


def _special(stated: GgufVocabulary, place: int, kind: int) -> Json:
    return {"SpecialToken": {"id": _text(stated, place), "type_id": kind}}


def _of_pieces(stated: GgufVocabulary) -> tuple[Vocabulary, Files, Json]:
    """Return the files of a SentencePiece model.

    llama.cpp adds a space to text after every special token, which transformers calls legacy.
    """
    pieces = read_pieces(stated)
    config = {
        "tokenizer_class": "LlamaTokenizer",
        "legacy": True,
        "add_prefix_space": pieces.model.adds_dummy_prefix,
        "added_tokens_decoder": {
            str(place): msgspec.to_builtins(token) for place, token in pieces.added.items()
        },
    }
    return pieces.vocabulary, {"tokenizer.model": pieces.model.serialized()}, config


def _of_bytes(stated: GgufVocabulary) -> tuple[Vocabulary, Files, Json]:
    """Return the files of a vocabulary of RWKV."""
    tokenizer = load_escaped_bytes(stated)
    added = {str(token.token_id): {"content": token.text} for token in tokenizer.vocabulary.specials}
    config = {"tokenizer_class": "RwkvTokenizer", "added_tokens_decoder": added}
    return tokenizer.vocabulary, {WORLD_FILE: vocabulary_file(tokenizer.ids)}, config
