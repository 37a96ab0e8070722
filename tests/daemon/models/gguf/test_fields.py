from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.gguf.fields import GgufFields, MetadataFields, token_ids
from llmd.models.gguf.header_reader import HeaderReader
from llmd.models.gguf.metadata import read_metadata
from tests.corrupt.gguf_bytes import BOOL, STRING, U32, key, listed, text

F32 = 6
ARCHITECTURE = key("general.architecture", STRING, text("llama"))


def fields(tmp_path: Path, *keys: bytes) -> GgufFields:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"".join(keys))
    with path.open("rb") as file:
        return GgufFields(read_metadata(HeaderReader(file, name="m.gguf"), len(keys)), {"a.weight"})


def test_reads_the_keys_of_the_architecture(tmp_path: Path) -> None:
    read = fields(
        tmp_path,
        ARCHITECTURE,
        key("llama.n", U32, pack("<I", 7)),
        key("llama.x", F32, pack("<f", 1e-5)),
        key("llama.t", STRING, text("yarn")),
        listed("llama.same", U32, [pack("<I", 3)] * 2),
        listed("llama.flags", BOOL, [b"\0", b"\1"]),
    )
    assert (read.integer("n"), read.integer("same"), read.integer("absent", 5)) == (7, 3, 5)
    assert (read.real("x"), read.real("n"), read.real("absent", None)) == (1e-5, 7.0, None)
    assert (read.text("t"), read.text("absent", "none")) == ("yarn", "none")
    assert (read.flags("flags"), read.flags("n"), read.flags("absent")) == ([False, True], 7, None)
    assert read.has_tensor("a.weight")
    assert not read.has_tensor("b.weight")


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("integer", key("llama.k", STRING, text("7"))),
        ("integer", key("llama.k", F32, pack("<f", 7))),
        ("integer", key("llama.k", BOOL, b"\1")),
        ("integer", listed("llama.k", U32, [])),
        ("real", key("llama.k", F32, pack("<f", float("nan")))),
        ("real", key("llama.k", STRING, text("7"))),
        ("text", key("llama.k", U32, bytes(4))),
        ("flags", key("llama.k", STRING, text("x"))),
        ("text", listed("llama.k", STRING, [text("x")])),
    ],
)
def test_a_value_of_another_type_is_named(tmp_path: Path, method: str, value: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"m.gguf: llama.k is .*, expected"):
        getattr(fields(tmp_path, ARCHITECTURE, value), method)("k")


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("integer", listed("general.k", U32, [bytes(4)])),
        ("integer", listed("general.k", U32, [bytes(4), bytes(4)])),
        ("real", listed("general.k", U32, [bytes(4)])),
        ("text", listed("general.k", STRING, [text("x")])),
    ],
)
def test_a_list_is_no_value_of_a_key_that_layers_do_not_share(
    tmp_path: Path, method: str, value: bytes
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(value)
    with path.open("rb") as file:
        read = MetadataFields(read_metadata(HeaderReader(file, name="m.gguf"), 1), "general.")
    with pytest.raises(CheckpointError, match=r"m.gguf: general.k is .*, expected"):
        getattr(read, method)("k", None)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"the key llama.k is missing"):
        fields(tmp_path, ARCHITECTURE).integer("k")
    with pytest.raises(CheckpointError, match=r"the key general.architecture is missing"):
        fields(tmp_path)


def test_layers_that_differ_are_not_computed(tmp_path: Path) -> None:
    read = fields(tmp_path, ARCHITECTURE, listed("llama.k", U32, [pack("<I", n) for n in (3, 4)]))
    with pytest.raises(UnsupportedModelError, match="one number for all layers"):
        read.integer("k")


def test_numbers_may_differ_between_layers(tmp_path: Path) -> None:
    read = fields(
        tmp_path,
        ARCHITECTURE,
        listed("llama.counts", U32, [pack("<I", n) for n in (3, 0, 4)]),
        listed("llama.limits", F32, [pack("<f", n) for n in (7.3, 0.1)]),
        key("llama.one", F32, pack("<f", 7.3)),
        listed("llama.flags", BOOL, [b"\0"]),
        listed("llama.texts", STRING, [text("x")]),
    )
    assert (read.numbers("counts"), read.numbers("limits")) == ([3, 0, 4], [7.3, 0.1])
    assert (read.numbers("one"), read.numbers("absent")) == ([7.3], [])
    for wrong in ("flags", "texts"):
        with pytest.raises(CheckpointError, match=rf"llama.{wrong} is .*, expected numbers"):
            read.numbers(wrong)


def test_special_tokens_are_found_by_their_names() -> None:
    metadata = {
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.eot_token_id": 2,
        "tokenizer.ggml.eom_token_id": "x",
    }
    assert token_ids(metadata, "eos", "eot", "eom", "bos") == [2]


def test_some_keys_have_a_value_for_each_layer(tmp_path: Path) -> None:
    read = fields(
        tmp_path,
        key("general.architecture", STRING, text("gemma4")),
        listed("gemma4.feed_forward_length", U32, [pack("<I", 3), pack("<I", 6)]),
        key("gemma4.n", U32, pack("<I", 7)),
        listed("gemma4.flags", BOOL, [b"\0", b"\1"]),
        key("gemma4.t", STRING, text("x")),
    )
    assert read.each("feed_forward_length", 2) == [3, 6]
    assert read.integer("feed_forward_length") == 3
    assert (read.each("n", 3), read.each("flags", 2)) == ([7, 7, 7], [False, True])
    with pytest.raises(CheckpointError, match="has 2 values for 3 layers"):
        read.each("feed_forward_length", 3)
    with pytest.raises(CheckpointError, match="expected integers or truth values"):
        read.each("t", 1)
    with pytest.raises(CheckpointError, match=r"gemma4\.absent is missing"):
        read.each("absent", 1)
