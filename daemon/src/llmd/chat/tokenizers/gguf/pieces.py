"""GGUF vocabularies of pieces with scores: ``llama`` (SentencePiece's BPE) and ``t5`` (unigram models)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, structs

from llmd.chat.tokenizers.gguf.roles import swallows_space, vocabulary_of
from llmd.chat.tokenizers.gguf.sentencepiece_model import Algorithm, PieceKind, SentencePieceModel
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer, open_processors
from llmd.chat.tokenizers.tokenizer import Vocabulary
from llmd.chat.tokenizers.tokenizer_config import AddedToken

# Default ids, for files that do not state them.
_IDS = {"llama": {"bos": 1, "eos": 2, "unk": 0}, "t5": {"eos": 1, "unk": 2}}
_KINDS: Mapping[int, PieceKind] = {TokenKind.BYTE: PieceKind.BYTE, TokenKind.UNUSED: PieceKind.UNUSED}


def load_pieces(stated: GgufVocabulary) -> SentencePieceTokenizer:
    """Load the tokenizer of a vocabulary with scores, run by SentencePiece itself.

    If the start of a text gets a space, so does text after a special token, as in llama.cpp: files do not say
    which models differ.

    Raises:
        TokenizerError: SentencePiece rejects the vocabulary.
    """
    pieces = read_pieces(stated)
    processors = open_processors(Path(stated.file), pieces.model.serialized())
    return SentencePieceTokenizer(pieces.vocabulary, processors, pieces.added)


class Pieces(Struct, frozen=True):
    """The parts of the tokenizer of such a vocabulary."""

    vocabulary: Vocabulary
    model: SentencePieceModel
    added: dict[int, AddedToken]
    """Tokens that are matched as a whole, by id."""


def read_pieces(stated: GgufVocabulary) -> Pieces:
    """Return the parts of the tokenizer.

    Raises:
        TokenizerError: there is no unknown token.
    """
    is_llama = stated.model == "llama"
    ids = {role: place for role, place in _IDS[stated.model].items() if place < len(stated.tokens)}
    complete = structs.replace(stated, ids=ids | stated.ids)
    if "unk" not in complete.ids:
        raise stated.error("there is no tokenizer.ggml.unknown_token_id")
    has_prefix = stated.switches.get("add_space_prefix", is_llama)
    vocabulary = vocabulary_of(
        complete, adds_bos=is_llama, adds_eos=not is_llama, strips_leading_space=has_prefix
    )
    added = _added(complete, vocabulary)
    model = SentencePieceModel(
        algorithm=Algorithm.BPE if is_llama else Algorithm.UNIGRAM,
        pieces=[text or f"[EMPTY_{place}]" for place, text in enumerate(complete.tokens)],
        scores=complete.scores,
        kinds=[_kind(complete, place, added) for place in range(len(complete.tokens))],
        unknown_id=complete.ids["unk"],
        adds_dummy_prefix=has_prefix,
        removes_extra_spaces=stated.switches.get("remove_extra_whitespaces", False),
        charsmap=stated.charsmap,
    )
    return Pieces(vocabulary, model, added)


def _added(stated: GgufVocabulary, vocabulary: Vocabulary) -> dict[int, AddedToken]:
    """Return the tokens that are matched as a whole: user-defined and special ones."""
    defined = stated.of_kind(TokenKind.USER_DEFINED)
    added = {
        place: AddedToken(text, special=False, rstrip=swallows_space(stated, text))
        for place, text in defined.items()
    }
    added |= {t.token_id: AddedToken(t.text, rstrip=t.rstrip) for t in vocabulary.specials}
    return dict(sorted(added.items()))


def _kind(stated: GgufVocabulary, place: int, added: Mapping[int, AddedToken]) -> PieceKind:
    """Return the kind of a token for SentencePiece, which must not match the tokens in ``added`` itself."""
    if place == stated.ids["unk"]:
        return PieceKind.UNKNOWN
    if place in added:
        return PieceKind.CONTROL
    if not stated.tokens[place]:
        return PieceKind.UNUSED
    return _KINDS.get(stated.kinds[place], PieceKind.NORMAL)
