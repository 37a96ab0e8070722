"""Ops that keep a state, of any sizes, and workloads for each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llmd.api import HIDDEN, KVGroup, Linear, Op, Recurrence, TensorRef
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.testing.op_cases import part_case
from llmd.testing.sources import NEGATIVE
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


def gated_delta(
    heads: int, key_heads: int, dims: tuple[int, int], taps: int, *, by_element: bool = False, **fields: Any
) -> GatedDelta:
    """Return an op of the first layer; ``dims`` are the elements of a key and of a value.

    With ``by_element``, each element of a key has a decay.
    """
    key_dim, value_dim = dims
    keys, values = key_heads * key_dim, heads * value_dim
    q_taps, k_taps, v_taps = _filters({"q": keys, "k": keys, "v": values}, taps)
    sizes = {"heads": heads, "key_heads": key_heads, "key_dim": key_dim, "value_dim": value_dim}
    return GatedDelta(
        "q",
        "k",
        "v",
        "decay",
        "beta",
        "y",
        q_taps,
        k_taps,
        v_taps,
        rates=_rates(heads, fields),
        bias=TensorRef("bias", (heads * key_dim if by_element else heads,)),
        **{"group": 0, "layer": 0, **sizes, **fields},
    )


def state_space(
    heads: int, groups: int, dims: tuple[int, int], taps: int, *, biased: bool = True, **fields: Any
) -> StateSpace:
    """Return an op of the first layer; ``dims`` are the elements of a state and of a head.

    With ``biased``, the convolutions have biases.
    """
    state_size, head_dim = dims
    widths = {"c": groups * state_size, "b": groups * state_size, "x": heads * head_dim}
    c_taps, b_taps, x_taps = _filters(widths, taps)
    biases = {f"{name}_bias": TensorRef(f"{name}.filter_bias", (width,)) for name, width in widths.items()}
    sizes = {"heads": heads, "groups": groups, "state_size": state_size, "head_dim": head_dim}
    return StateSpace(
        "c",
        "b",
        "x",
        "time",
        "y",
        c_taps,
        b_taps,
        x_taps,
        rates=_rates(heads, fields),
        bias=TensorRef("bias", (heads,)),
        skips=TensorRef("skips", (heads,)),
        **{"group": 0, "layer": 0, **sizes, **(biases if biased else {}), **fields},
    )


def _gated_delta() -> Iterator[Workload]:
    """Yield layers whose heads share keys in both orders, with odd sizes and each kind of decay.

    "negative" is what GGUF files store of Qwen3.5: negative rates, and tiled heads.
    """
    for name, op in {
        "grouped": gated_delta(4, 2, (12, 20), 4),
        "tiled": gated_delta(6, 2, (16, 16), 3, tiled=True),
        "elements": gated_delta(2, 2, (10, 33), 4, by_element=True),
        "one-tap": gated_delta(3, 3, (7, 5), 1),
        "negative": gated_delta(4, 2, (12, 20), 4, rates_as="negative", tiled=True),
    }.items():
        yield _state_case(f"gated_delta/{name}", op)


def _state_space() -> Iterator[Workload]:
    """Yield layers with several heads for each group, with odd sizes, times with and without bounds, and both
    forms of rates.
    """
    for name, op in {
        "grouped": state_space(4, 2, (12, 20), 4),
        "one-group": state_space(6, 1, (16, 16), 3, biased=False),
        "bounds": state_space(2, 2, (10, 33), 4, least_time=0.3, most_time=1.1),
        "one-tap": state_space(19, 19, (7, 5), 1, least_time=0.01),
        "negative": state_space(4, 2, (12, 20), 4, rates_as="negative"),
    }.items():
        yield _state_case(f"state_space/{name}", op)


def _rates(heads: int, fields: Mapping[str, object]) -> TensorRef:
    """Return the rates ``[heads]`` of an op with these fields, by a name that gives them their sign."""
    return TensorRef(f"rates{NEGATIVE}" if fields.get("rates_as") == "negative" else "rates", (heads,))


def _filters(widths: Mapping[str, int], taps: int) -> Iterator[TensorRef]:
    return (TensorRef(f"{value}.taps", (width, 1, taps)) for value, width in widths.items())


def _state_case(name: str, op: GatedDelta | StateSpace) -> Workload:
    """Return a case with linear ops before and behind the op."""
    keys, values = op.sizes.key_heads * op.sizes.key_dim, op.heads * op.sizes.value_dim
    widths = dict(zip(op.reads, (keys, keys, values, op.bias.shape[-1], op.heads), strict=False))
    weights = tuple(TensorRef(value, (width, _WIDTH)) for value, width in widths.items())
    back = TensorRef("back", (_WIDTH, values))
    ops: tuple[Op, ...] = (
        Linear(HIDDEN, tuple(widths), weights, (None,) * len(widths)),
        op,
        Linear("y", (HIDDEN,), (back,), (None,)),
    )
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=4 * op.state_elements)
    return part_case(name, ops, groups=(group,), max_nmse=1e-9)
