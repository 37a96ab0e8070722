from __future__ import annotations

import io
from typing import cast

import pytest

from llmd.api.messages import Cancel, FromEngine, StopParams, Submit, ToEngine
from llmd.api.results import Output, Started, TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.process.frames import (
    HEADER_BYTES,
    FrameDecoder,
    FrameError,
    encode_frame,
    frame,
    payload_length,
    read_payload,
)

SUBMIT = Submit(3, (1, 2), SamplingParams(seed=2**64 - 1), StopParams(max_tokens=1), (9,))


def decoder() -> FrameDecoder[ToEngine]:
    return FrameDecoder(cast("type[ToEngine]", ToEngine))


def test_messages_survive_any_cut_of_the_bytes() -> None:
    frames = encode_frame(SUBMIT) + encode_frame(Cancel(3))
    for cut in range(len(frames)):
        one = decoder()
        assert one.feed(frames[:cut]) + one.feed(frames[cut:]) == [SUBMIT, Cancel(3)]


def test_output_comes_back_as_it_was() -> None:
    output = Output((TokenOutput(1, 5, "stop"), TokenOutput(2, 6)), started=(Started(2, 16),))
    one: FrameDecoder[FromEngine] = FrameDecoder(cast("type[FromEngine]", FromEngine))
    assert one.feed(encode_frame(output)) == [output]


def test_a_frame_of_something_else_is_refused() -> None:
    with pytest.raises(FrameError, match="cannot be read"):
        decoder().feed(b"\x02\x00\x00\x00\x81\xff")
    with pytest.raises(FrameError, match="at most"):
        decoder().feed(b"\xff\xff\xff\xff")


def test_a_frame_begins_with_the_length_of_its_payload() -> None:
    assert frame(b"abc") == b"\x03\x00\x00\x00abc"
    assert payload_length(frame(b"abc")[:HEADER_BYTES]) == 3
    assert len(frame(b"")) == HEADER_BYTES


def test_payloads_are_read_until_the_stream_ends() -> None:
    stream = io.BytesIO(frame(b"abc") + frame(b""))
    assert [read_payload(stream) for _ in range(3)] == [b"abc", b"", None]
