"""SentencePiece's ``tokenizer.model``: Llama 2, Mistral, Gemma."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from sentencepiece import SentencePieceProcessor

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.special_tokens import SpecialToken, SpecialTokenSplitter
from llmd.chat.tokenizers.tokenizer import Tokenizer, Vocabulary
from llmd.chat.tokenizers.tokenizer_config import AddedToken, TokenizerConfig

# Field 3 of ModelProto (normalizer_spec) with field 3 (add_dummy_prefix) false. Concatenated protocol buffers
# are merged, so appending these bytes to a model turns its dummy prefix off.
_NO_DUMMY_PREFIX = b"\x1a\x02\x18\x00"


class Processors(Struct, frozen=True):
    """SentencePiece's model with its dummy prefix, for starts of texts, and without, for continuations."""

    starting: SentencePieceProcessor
    continuing: SentencePieceProcessor

    @property
    def prefixes(self) -> bool:
        return self.starting is not self.continuing


class SentencePieceTokenizer(Tokenizer):
    """Runs SentencePiece on the text between ``added`` tokens.

    ``added`` is by id and includes control tokens, which SentencePiece itself never matches in text. With
    ``legacy`` (transformers' name) every piece of text gets SentencePiece's dummy prefix, otherwise only the
    start of a text. Without ``prefixes_start`` no text gets it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        processors: Processors,
        added: Mapping[int, AddedToken],
        *,
        legacy: bool = True,
        prefixes_start: bool = True,
    ) -> None:
        super().__init__(vocabulary)
        self._model = processors.starting
        self._continuing = processors.continuing
        self._starting = processors.starting if prefixes_start else processors.continuing
        self._legacy = legacy
        self._added = added
        tokens = [SpecialToken(t.content, i, t.lstrip, t.rstrip) for i, t in added.items()]
        self._splitter = SpecialTokenSplitter(tokens)
        self._plain_splitter = SpecialTokenSplitter(t for t in tokens if not self.is_special(t.token_id))
        self._ids = {token.text: token.token_id for token in tokens}
        self._symbol_splitter = SpecialTokenSplitter(
            t for t in self.vocabulary.specials if self._is_symbol(t.token_id)
        )

    @property
    def added(self) -> Mapping[int, AddedToken]:
        """Tokens that are matched as a whole."""
        return self._added

    @property
    def prefixes_start(self) -> bool:
        """Whether the start of a text gets a dummy prefix."""
        return self._starting is not self._continuing

    def content(self) -> bytes:
        """Return SentencePiece's model, as in ``tokenizer.model``."""
        content: bytes = self._model.serialized_model_proto()
        return content

    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        splitter = self._splitter if parse_special else self._plain_splitter
        ids: list[int] = []
        for place, piece in enumerate(splitter.split(text)):
            starts = self._legacy or (at_start and place == 0)
            ids += [piece.token.token_id] if piece.token else self._encode_plain(piece.text, starts=starts)
        return ids

    def _encode_plain(self, text: str, *, starts: bool) -> list[int]:
        """Encode without special tokens: split texts that SentencePiece itself would match as such."""
        ids: list[int] = []
        kept = ""
        for piece in self._symbol_splitter.split(text):
            if piece.token is None:
                kept += piece.text
                continue
            ids += self._run(kept + piece.text[:1], starts=starts and not ids)
            kept = piece.text[1:]
        return ids + self._run(kept, starts=starts and not ids)

    def _run(self, text: str, *, starts: bool) -> list[int]:
        model = self._starting if starts else self._continuing
        return list(model.encode(text)) if text else []

    def _is_symbol(self, token_id: int) -> bool:
        """Return whether SentencePiece matches the token in text, as it does Gemma's special tokens."""
        model = self._model
        inside = token_id < model.get_piece_size()
        return inside and not (model.is_control(token_id) or model.is_unknown(token_id))

    def token_bytes(self, token_id: int) -> bytes:
        if token_id in self._added:
            return self._added[token_id].content.encode()
        if not 0 <= token_id < self._model.get_piece_size():
            return b""
        piece = self._model.id_to_piece(token_id)
        if self._model.is_byte(token_id):
            return bytes([int(piece[3:5], 16)])
        return piece.replace("▁", " ").encode()

    def token_id(self, text: str) -> int | None:
        if text in self._ids:
            return self._ids[text]
        return _piece_id(self._model, text)


def load_sentencepiece(path: Path, content: bytes, config: TokenizerConfig) -> SentencePieceTokenizer:
    """Load the tokenizer of a SentencePiece model.

    Raises:
        TokenizerError: the content is not a model, or ``config`` contradicts it.
    """
    processors = open_processors(path, content)
    added = _all_added(processors.starting, config)
    return SentencePieceTokenizer(
        _describe(processors, added, config, path),
        processors,
        added,
        # As in transformers: legacy unless the configuration says otherwise.
        legacy=config.legacy is not False,
        prefixes_start=config.add_prefix_space is not False,
    )


def open_processors(path: Path, content: bytes) -> Processors:
    """Open the model in ``content``, the content of ``path``.

    Raises:
        TokenizerError: it is not a model.
    """
    model = _processor(content, path)
    has_prefix = model.normalize("a") != "a"
    return Processors(model, _processor(content + _NO_DUMMY_PREFIX, path) if has_prefix else model)


def _processor(content: bytes, path: Path) -> SentencePieceProcessor:
    try:
        model = SentencePieceProcessor(model_proto=content)
        # The library notices pieces that are not UTF-8 and a missing unknown piece only on access.
        model.id_to_piece([*range(model.get_piece_size()), model.unk_id()])
    except (RuntimeError, UnicodeDecodeError, IndexError) as exc:
        raise TokenizerError(
            f"{path} is not a SentencePiece model: {exc}",
            hint="the file is damaged or truncated; copy it again from its model",
        ) from exc
    return model


def _piece_id(model: SentencePieceProcessor, text: str) -> int | None:
    """Return the id of a piece, or None; ``piece_to_id`` returns the unknown piece's id instead of None."""
    token_id = int(model.piece_to_id(text))
    return token_id if model.id_to_piece(token_id) == text else None


def _all_added(model: SentencePieceProcessor, config: TokenizerConfig) -> dict[int, AddedToken]:
    """Return the tokens that are matched as a whole: control and unknown pieces, and those of ``config``."""
    pieces = range(model.get_piece_size())
    added = {
        i: AddedToken(model.id_to_piece(i)) for i in pieces if model.is_control(i) or model.is_unknown(i)
    }
    named = {_piece_id(model, text): text for text in config.special_texts}
    added |= {i: AddedToken(text) for i, text in named.items() if i is not None}
    return added | config.added


def _describe(
    processors: Processors,
    added: dict[int, AddedToken],
    config: TokenizerConfig,
    path: Path,
) -> Vocabulary:
    model = processors.starting
    _check_ids(model, added, path)
    bos_id = _role_id(config, "bos_token", added, model.bos_id(), path)
    eos_id = _role_id(config, "eos_token", added, model.eos_id(), path)
    texts = config.special_texts
    return Vocabulary(
        size=max(model.get_piece_size(), *(token_id + 1 for token_id in added)),
        bos_id=bos_id,
        eos_ids=() if eos_id is None else (eos_id,),
        prefix_ids=() if bos_id is None or config.add_bos is False else (bos_id,),
        suffix_ids=(eos_id,) if config.add_eos and eos_id is not None else (),
        specials=tuple(
            SpecialToken(token.content, token_id, token.lstrip, token.rstrip)
            for token_id, token in sorted(added.items())
            if token.special or token.content in texts
        ),
        strips_leading_space=processors.prefixes,
    )


def _check_ids(model: SentencePieceProcessor, added: dict[int, AddedToken], path: Path) -> None:
    ids: dict[str, int] = {}
    for token_id, token in added.items():
        held = ids.setdefault(token.content, token_id)
        piece = _piece_id(model, token.content)
        if token_id < 0 or held != token_id or piece not in {None, token_id}:
            raise TokenizerError(
                f"{path}: the configuration gives token {token.content!r} id {token_id}, but it has ids {(held, piece)}",
                hint="the tokenizer files contradict each other; copy all of them from the same model",
            )


def _role_id(
    config: TokenizerConfig, key: str, added: dict[int, AddedToken], default: int, path: Path
) -> int | None:
    text = config.name(key)
    if text is None:
        return default if default >= 0 else None
    ids = [token_id for token_id, token in added.items() if token.content == text]
    if not ids:
        raise TokenizerError(
            f"{path.parent}: {key} is {text!r}, which is not in {path.name}",
            hint="correct tokenizer_config.json or copy the tokenizer files from the same model",
        )
    return ids[0]
