"""SentencePiece reads models that are written here like its own files."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from sentencepiece import SentencePieceNormalizer, SentencePieceProcessor

from llmd.chat.tokenizers.gguf.sentencepiece_model import Algorithm, PieceKind, SentencePieceModel

MODEL = SentencePieceModel(
    algorithm=Algorithm.BPE,
    pieces=["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a", "x" * 300],
    scores=[0.0] * 258 + [-1.0, -2.0, -0.5, -1e9],
    kinds=[PieceKind.UNKNOWN, PieceKind.CONTROL] + [PieceKind.BYTE] * 256 + [PieceKind.NORMAL] * 4,
    unknown_id=0,
    adds_dummy_prefix=True,
    removes_extra_spaces=False,
)


def read(**changes: object) -> SentencePieceProcessor:
    return SentencePieceProcessor(model_proto=msgspec.structs.replace(MODEL, **changes).serialized())


def test_pieces_scores_and_kinds_are_read_back() -> None:
    model = read()
    assert [model.id_to_piece(i) for i in range(model.get_piece_size())] == MODEL.pieces
    assert [model.get_score(i) for i in range(256, 262)] == pytest.approx(list(MODEL.scores[256:]))
    assert (model.is_unknown(0), model.is_control(1), model.is_byte(2), model.is_unused(260)) == (1, 1, 1, 0)
    assert model.unk_id() == 0


def test_text_is_merged_by_score_and_what_is_unknown_becomes_bytes() -> None:
    assert read().encode("aé") == [260, 2 + 0xC3, 2 + 0xA9]


def test_a_prefix_and_the_spaces_between_are_as_asked_for() -> None:
    assert read(adds_dummy_prefix=False).encode("a  a") == [259, 258, 260]
    assert read(adds_dummy_prefix=False, removes_extra_spaces=True).encode("a  a ") == [259, 260]


def test_a_unigram_model_finds_the_likeliest_pieces() -> None:
    model = read(algorithm=Algorithm.UNIGRAM)
    assert model.encode("a") == [260]
    assert math.isclose(model.get_score(260), -0.5)


def test_characters_are_mapped_before() -> None:
    # NormalizerSpec: a name of less than 128 bytes (field 1), then the map (field 2).
    spec = SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_normalizer_spec()
    charsmap = spec[2 + spec[1] :]
    assert charsmap[:1] == b"\x12"
    begin = 1 + next(place for place, byte in enumerate(charsmap[1:], 1) if byte < 0x80)
    length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(charsmap[1:begin]))
    charsmap = charsmap[begin : begin + length]
    assert read(charsmap=charsmap, adds_dummy_prefix=False).encode("\uff41") == [259]


def test_a_model_is_read_as_it_was_written() -> None:
    other = msgspec.structs.replace(
        MODEL, algorithm=Algorithm.UNIGRAM, adds_dummy_prefix=False, unknown_id=1, charsmap=b"\0\1" * 300
    )
    for model in (MODEL, other):
        assert SentencePieceModel.parse(model.serialized()) == model


def test_a_trained_model_is_read_as_sentencepiece_reads_it() -> None:
    content = (
        Path(__file__).parents[4] / "golden/tokenizers/sentencepiece_llama/tokenizer.model"
    ).read_bytes()
    theirs, model = SentencePieceProcessor(model_proto=content), SentencePieceModel.parse(content)
    size = theirs.get_piece_size()
    assert list(model.pieces) == theirs.id_to_piece(list(range(size)))
    assert list(model.scores) == theirs.get_score(list(range(size)))
    assert [kind == PieceKind.BYTE for kind in model.kinds] == [theirs.is_byte(i) for i in range(size)]
    assert model.unknown_id == theirs.unk_id()
    again = SentencePieceProcessor(model_proto=model.serialized())
    assert again.encode("Hello wörld  x") == theirs.encode("Hello wörld  x")
