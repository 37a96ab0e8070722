"""Messages with arrays survive frames bit for bit, and malformed frames are errors."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llmd.api.draws import NUM_COLUMNS, Draws
from llmd.api.kernel_use import KernelUse, SlowPath
from llmd.api.spans import Span
from llmd.api.step import LateEdits, Selection, Step, StepResult, Ticket
from llmd.process.frames import FrameError
from llmd.remote.array_frames import ALIGNMENT, VERSION, ArrayFrame, ArrayFrameReader
from llmd.remote.messages import DeviceStatus, Reply, Request, SubmitStep

COUNTS = st.integers(0, 5)


def framed(message: object) -> memoryview:
    frame = ArrayFrame(message)
    buffer = memoryview(bytearray(frame.num_bytes))
    frame.write_to(buffer)
    return buffer.toreadonly()


def there_and_back(message: Any, form: Any) -> Any:
    return ArrayFrameReader[Any](form).read(framed(message))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays by type, shape and bits."""
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, msgspec.Struct):
        names = one.__struct_fields__
        return type(one) is type(other) and all(same(getattr(one, n), getattr(other, n)) for n in names)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def values(draw: st.DrawFn, dtype: Any, *shape: int) -> NDArray[Any]:
    """Return an array of any bits."""
    seed = draw(st.integers(0, 2**32 - 1))
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(seed).bytes(size)
    found: NDArray[Any] = np.frombuffer(raw, np.uint8).view(dtype).reshape(shape)
    return found % 2 == 0 if dtype is np.bool_ else found


@st.composite
def steps(draw: st.DrawFn) -> Step:
    rows, sequences = draw(COUNTS), draw(COUNTS)
    tables = tuple(values(draw, np.int32, sequences, width) for width in draw(st.lists(COUNTS, max_size=3)))
    return Step(
        values(draw, np.int32, rows),
        values(draw, np.int32, rows),
        values(draw, np.int32, sequences + 1),
        tables,
        values(draw, np.int32, draw(COUNTS), 3),
        feed=draw(st.none() | st.integers(0, 9).map(Ticket)),
        token_types=draw(st.none() | st.just(values(draw, np.int32, rows))),
    )


def flags(draw: st.DrawFn, count: int) -> NDArray[np.bool_]:
    return np.array([draw(st.booleans()) for _ in range(count)], np.bool_)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    rows, edits = draw(COUNTS), draw(COUNTS)
    draws = Draws(
        values(draw, np.int8, rows),
        values(draw, np.float64, rows, NUM_COLUMNS),
        values(draw, np.uint64, rows),
        values(draw, np.uint64, rows),
        values(draw, np.uint64, rows),
        flags(draw, rows),
    )
    return Selection(
        values(draw, np.int32, rows),
        values(draw, np.int32, rows + 1),
        values(draw, np.int32, edits),
        values(draw, np.float32, edits),
        values(draw, np.float32, edits),
        flags(draw, rows),
        values(draw, np.float32, rows),
        values(draw, np.int32, rows),
        raw_top=draw(COUNTS),
        draws=draw(st.none() | st.just(draws)),
        late=draw(st.none() | st.just(flags(draw, rows))),
    )


@st.composite
def results(draw: st.DrawFn) -> StepResult:
    rows, kept, top = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    return StepResult(
        ids=values(draw, np.int32, rows, kept),
        edited=values(draw, np.float32, rows, kept),
        raw=values(draw, np.float32, rows, kept),
        raw_logsumexp=values(draw, np.float32, rows),
        edited_logsumexp=values(draw, np.float32, rows),
        edited_entropy=values(draw, np.float32, rows),
        edited_deviation=values(draw, np.float32, rows),
        num_allowed=values(draw, np.int32, rows),
        target_raw=values(draw, np.float32, rows),
        top_ids=values(draw, np.int32, rows, top),
        top_raw=values(draw, np.float32, rows, top),
        tokens=draw(st.none() | st.just(values(draw, np.int32, rows))),
    )


@given(steps(), selections())
def test_a_step_with_its_selection_and_hidden_states_survives(step: Step, selection: Selection) -> None:
    hidden = np.arange(12, dtype=np.float32).reshape(3, 4)
    request = SubmitStep(1, 2, step, hidden, selection)
    assert same(there_and_back(request, Request), request)


@given(results())
def test_a_result_survives(result: StepResult) -> None:
    reply = Reply(result, status=DeviceStatus(3, 2, {1: KernelUse(("graphs",), (SlowPath("is hot"),))}))
    assert same(there_and_back(reply, Reply[StepResult]), reply)


@given(st.data())
def test_edits_spans_and_plain_arrays_survive(data: st.DataObject) -> None:
    ids, numbers = np.arange(3, dtype=np.int32), np.arange(3, dtype=np.float32)
    edits = LateEdits(ids, ids + 1, numbers, numbers - 1)
    assert same(there_and_back(edits, LateEdits), edits)
    spans = (Span("launch", "submit", 0.1, 0.2), Span("device", "layers", 0.2, 1e300))
    assert there_and_back(Reply(spans), Reply[tuple[Span, ...]]).value == spans
    blocks = data.draw(st.binary(max_size=300))
    array = np.frombuffer(blocks, np.uint8)
    assert same(there_and_back(Reply(array), Reply[NDArray[np.uint8]]).value, array)


def test_arrays_are_copied_and_aligned() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    frame = framed(Reply(rows.T))
    read = ArrayFrameReader[Any](Reply[NDArray[np.float32]]).read(frame).value
    assert same(read, np.ascontiguousarray(rows.T))
    assert read.flags.c_contiguous
    assert read.flags.owndata or read.base.flags.owndata
    assert bytes(frame).index(np.ascontiguousarray(rows.T).tobytes()) % ALIGNMENT == 0


def test_what_is_no_array_is_no_message() -> None:
    with pytest.raises(TypeError, match="holds a object"):
        ArrayFrame([object()])


GOOD = bytes(framed(Reply(np.arange(4, dtype=np.float32))))


def packed(header: object, arrays: bytes = b"") -> bytes:
    """A frame whose msgpack is the header."""
    data = bytearray(framed(header))
    return bytes(data) + bytes(-len(data) % ALIGNMENT) + arrays


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        GOOD[:5],
        b"nope" + GOOD[4:],
        GOOD[:4] + (VERSION + 1).to_bytes(4, "little") + GOOD[8:],
        GOOD[:8] + (10_000).to_bytes(4, "little") + GOOD[12:],
        GOOD[:-1],
        packed({"value": ["<i4", [1], 0]}, bytes(4)),
        packed({"value": ["<f4", [2], 0]}, bytes(4)),
        packed({"value": ["<f4", [1], -4]}, bytes(4)),
        packed({"value": ["<f4", [-1], 0]}, bytes(4)),
        packed({"value": ["<f4", [-1, -1], 0]}, bytes(4)),
        packed({"value": ["<f4", [2**40, 2**40], 0]}, bytes(4)),
        packed({"value": 7}),
        packed({"value": ["<f4"]}),
        packed([1]),
    ],
)
def test_malformed_frames_are_refused(frame: bytes) -> None:
    with pytest.raises(FrameError):
        ArrayFrameReader[Any](Reply[NDArray[np.float32]]).read(memoryview(frame))


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_no_changed_byte_raises_another_error(place: int, value: int) -> None:
    changed = GOOD[:place] + bytes([value]) + GOOD[place + 1 :]
    try:
        read = ArrayFrameReader[Any](Reply[NDArray[np.float32]]).read(memoryview(changed))
    except FrameError:
        return
    assert isinstance(read, Reply)
