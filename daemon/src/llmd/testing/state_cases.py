"""Workloads for each op that keeps a state."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import HIDDEN, KVGroup, Linear, Op, Recurrence, TensorRef
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.testing.op_cases import part_case
from llmd.testing.workload import Workload

_WIDTH = 48


def state_cases() -> Iterator[Workload]:
    """Yield every case of an op with a state."""
    yield from _recurrence()
    yield from _gated_delta()
    yield from _state_space()


def _recurrence() -> Iterator[Workload]:
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=4 * _WIDTH)
    op = Recurrence(HIDDEN, HIDDEN, TensorRef("decay", (_WIDTH,)), 0, 0)
    yield part_case("recurrence", (op,), groups=(group,))


def _gated_delta() -> Iterator[Workload]:
    """Yield layers whose heads share keys in both orders, with odd sizes and each kind of decay."""
    for name, heads, key_heads, dims, taps, by_element, tiled in (
        ("grouped", 4, 2, (12, 20), 4, False, False),
        ("tiled", 6, 2, (16, 16), 3, False, True),
        ("elements", 2, 2, (10, 33), 4, True, False),
        ("one-tap", 3, 3, (7, 5), 1, False, False),
    ):
        key_dim, value_dim = dims
        widths = {"q": key_heads * key_dim, "k": key_heads * key_dim, "v": heads * value_dim}
        widths |= {"decay": heads * key_dim if by_element else heads, "beta": heads}
        q_taps, k_taps, v_taps = (_filter(value, widths, taps) for value in ("q", "k", "v"))
        op = GatedDelta(
            "q",
            "k",
            "v",
            "decay",
            "beta",
            "y",
            q_taps,
            k_taps,
            v_taps,
            rates=TensorRef("rates", (heads,)),
            bias=TensorRef("bias", (widths["decay"],)),
            group=0,
            layer=0,
            heads=heads,
            key_heads=key_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            tiled=tiled,
        )
        yield _state_case(f"gated_delta/{name}", op, widths)


def _state_space() -> Iterator[Workload]:
    """Yield layers with several heads for each group, with odd sizes, and times with and without bounds."""
    for name, heads, groups, state_size, head_dim, taps, biased, times in (
        ("grouped", 4, 2, 12, 20, 4, True, (0.0, None)),
        ("one-group", 6, 1, 16, 16, 3, False, (0.0, None)),
        ("bounds", 2, 2, 10, 33, 4, True, (0.3, 1.1)),
        ("one-tap", 19, 19, 7, 5, 1, True, (0.01, None)),
    ):
        widths = {"c": groups * state_size, "b": groups * state_size, "x": heads * head_dim, "time": heads}
        biases = [TensorRef(f"{value}.filter_bias", (widths[value],)) for value in ("c", "b", "x")]
        c_taps, b_taps, x_taps = (_filter(value, widths, taps) for value in ("c", "b", "x"))
        op = StateSpace(
            "c",
            "b",
            "x",
            "time",
            "y",
            c_taps,
            b_taps,
            x_taps,
            rates=TensorRef("rates", (heads,)),
            bias=TensorRef("bias", (heads,)),
            skips=TensorRef("skips", (heads,)),
            group=0,
            layer=0,
            heads=heads,
            groups=groups,
            state_size=state_size,
            head_dim=head_dim,
            least_time=times[0],
            most_time=times[1],
            c_bias=biases[0] if biased else None,
            b_bias=biases[1] if biased else None,
            x_bias=biases[2] if biased else None,
        )
        yield _state_case(f"state_space/{name}", op, widths)


def _filter(value: str, widths: dict[str, int], taps: int) -> TensorRef:
    return TensorRef(f"{value}.taps", (widths[value], 1, taps))


def _state_case(name: str, op: GatedDelta | StateSpace, widths: dict[str, int]) -> Workload:
    """Return a case with linear ops before and behind the op, whose values have these ``widths``."""
    weights = tuple(TensorRef(value, (width, _WIDTH)) for value, width in widths.items())
    back = TensorRef("back", (_WIDTH, list(widths.values())[2]))
    ops: tuple[Op, ...] = (
        Linear(HIDDEN, tuple(widths), weights, (None,) * len(widths)),
        op,
        Linear("y", (HIDDEN,), (back,), (None,)),
    )
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=4 * op.state_elements)
    return part_case(name, ops, groups=(group,), max_nmse=1e-9)
