from __future__ import annotations

from tokenizers import pre_tokenizers

from llmd.chat.tokenizers.token_bytes import ByteLevelPieces, SpacedPieces, WordPieces


def test_byte_level_alphabet_stands_for_each_byte_once() -> None:
    pieces = ByteLevelPieces()
    assert sorted(map(pieces, pre_tokenizers.ByteLevel.alphabet())) == [bytes([byte]) for byte in range(256)]


def test_bytes_are_written_as_they_are_read() -> None:
    pieces = ByteLevelPieces()
    content = bytes(range(256))
    assert pieces(pieces.written(content)) == content


def test_byte_level_piece_is_the_utf8_of_its_text() -> None:
    assert ByteLevelPieces()("ĠGrÃ¶ÃŁe") == " Größe".encode()


def test_mark_of_sentencepiece_is_a_space() -> None:
    assert SpacedPieces(byte_fallback=True)("▁a▁") == b" a "


def test_byte_piece_is_a_byte_only_with_fallback() -> None:
    assert SpacedPieces(byte_fallback=True)("<0xE2>") == b"\xe2"
    assert SpacedPieces(byte_fallback=False)("<0xE2>") == b"<0xE2>"


def test_a_word_begins_after_a_space_and_goes_on_with_its_prefix() -> None:
    pieces = WordPieces("##")
    assert b"".join(map(pieces, ["un", "##aff", "##able", "größe"])) == " unaffable größe".encode()
    assert WordPieces("")("##a") == b" ##a"
