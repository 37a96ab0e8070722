"""Find and load the tokenizer of a model directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmd.api.errors import CheckpointError, TokenizerError
from llmd.chat.json_file import read_file
from llmd.chat.tokenizers.byte_level_bpe import load_vocab_and_merges
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.longest_match_tokenizer import FILES as RWKV_FILES
from llmd.chat.tokenizers.longest_match_tokenizer import load_longest_match
from llmd.chat.tokenizers.panics import panics_refused
from llmd.chat.tokenizers.sentencepiece_tokenizer import load_sentencepiece
from llmd.chat.tokenizers.tekken_tokenizer import load_tekken
from llmd.chat.tokenizers.tiktoken_tokenizer import load_tiktoken, looks_like_tiktoken
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig, read_tokenizer_config
from llmd.chat.tokenizers.tokenizer_json import load_tokenizer_json
from llmd.chat.tokenizers.word_patterns import KIMI
from llmd.chat.tokenizers.word_piece import load_word_piece
from llmd.models.files import is_named
from llmd.models.gguf.model_metadata import gguf_metadata

KIMI_FILE = "tiktoken.model"


def load_tokenizer(directory: Path) -> Tokenizer:
    """Load the tokenizer of a model.

    The first of these files is used: ``tokenizer.json``, ``vocab.json`` with ``merges.txt``,
    ``tokenizer.model``, Mistral's ``tekken.json`` or ``tokenizer.model.vN``, Kimi's ``tiktoken.model``,
    ``vocab.txt``, RWKV's ``rwkv_vocab_DATE.txt``. A GGUF file contains its tokenizer. The content of a
    ``tokenizer.model`` decides whether it is SentencePiece's or tiktoken's.

    Raises:
        NotFoundError: there is no such directory or file.
        TokenizerError: files are missing, damaged or contradict each other; the message names the file.
    """
    with panics_refused(f"{directory}: the tokenizer"), _as_tokenizer_error():
        metadata = gguf_metadata(directory)
        return _load(directory) if metadata is None else load_gguf_tokenizer(metadata, metadata.file)


@contextmanager
def _as_tokenizer_error() -> Iterator[None]:
    try:
        yield
    except CheckpointError as exc:
        raise TokenizerError(exc.message, hint=exc.hint) from exc


def _load(directory: Path) -> Tokenizer:
    config = read_tokenizer_config(directory)
    if is_named(directory / "tokenizer.json"):
        return load_tokenizer_json(directory / "tokenizer.json", config)
    if is_named(directory / "vocab.json"):
        return load_vocab_and_merges(directory / "vocab.json", directory / "merges.txt", config)
    if is_named(directory / "tokenizer.model"):
        return _load_model_file(directory / "tokenizer.model", config)
    if is_named(directory / "tekken.json"):
        return load_tekken(directory / "tekken.json", config)
    if versions := sorted(directory.glob("tokenizer.model.v*")):
        return _load_model_file(versions[-1], config)
    return _load_words(directory, config)


def _load_words(directory: Path, config: TokenizerConfig) -> Tokenizer:
    """Load a tokenizer whose file is a list of tokens."""
    if is_named(directory / KIMI_FILE):
        content = read_file(directory / KIMI_FILE, error=TokenizerError)
        return load_tiktoken(directory / KIMI_FILE, content, config, pattern=KIMI, adds_bos=False)
    if is_named(directory / "vocab.txt"):
        return load_word_piece(directory / "vocab.txt", config)
    if files := sorted(directory.glob(RWKV_FILES)):
        return load_longest_match(files[-1], config)
    raise TokenizerError(
        f"{directory} has no tokenizer",
        hint="copy tokenizer.json, vocab.json and merges.txt, tokenizer.model, tekken.json, vocab.txt, "
        f"{KIMI_FILE}, or {RWKV_FILES} from the model",
    )


def _load_model_file(path: Path, config: TokenizerConfig) -> Tokenizer:
    content = read_file(path, error=TokenizerError)
    if looks_like_tiktoken(content):
        return load_tiktoken(path, content, config)
    # A serialized ModelProto begins with its first piece: field 1, length-delimited.
    if content[:1] == b"\n":
        return load_sentencepiece(path, content, config)
    raise TokenizerError(
        f"{path} is neither a SentencePiece model nor in tiktoken's format",
        hint="the file is damaged or only a Git LFS pointer; copy it again from the model",
    )
