from __future__ import annotations

import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.state_ops import GatedDelta
from llmd.builtin.reference.gated_delta import DeltaTensors, run_delta

HEADS, KEY_HEADS, KEY_DIM, VALUE_DIM, TAPS = 4, 2, 3, 5, 3
KEYS, VALUES = KEY_HEADS * KEY_DIM, HEADS * VALUE_DIM
ROWS = 7


def delta(**fields: object) -> GatedDelta:
    sizes = {"heads": HEADS, "key_heads": KEY_HEADS, "key_dim": KEY_DIM, "value_dim": VALUE_DIM}
    return GatedDelta(
        "q", "k", "v", "decay", "beta", "out",
        TensorRef("q", (KEYS, 1, TAPS)), TensorRef("k", (KEYS, 1, TAPS)), TensorRef("v", (VALUES, 1, TAPS)),
        rates=TensorRef("rates", (HEADS,)), bias=TensorRef("bias", (HEADS,)), group=0, layer=0,
        **{**sizes, **fields},  # type: ignore[arg-type]
    )  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


TENSORS = DeltaTensors(
    drawn(KEYS, 1, TAPS),
    drawn(KEYS, 1, TAPS, seed=1),
    drawn(VALUES, 1, TAPS),
    drawn(HEADS),
    drawn(HEADS, seed=1),
)


def values(decays: int = HEADS) -> tuple[np.ndarray, ...]:
    widths = (KEYS, KEYS, VALUES, decays, HEADS)
    return tuple(drawn(ROWS, width, seed=9 + i).astype(np.float32) for i, width in enumerate(widths))


def empty(op: GatedDelta) -> np.ndarray:
    return np.zeros(op.state_elements, np.float32)


def test_it_is_what_the_formula_says() -> None:
    """One head, written out with loops over rows and elements."""
    op = delta(heads=1, key_heads=1, value_dim=2)
    taps = [drawn(KEY_DIM, 1, TAPS), drawn(KEY_DIM, 1, TAPS, seed=1), drawn(2, 1, TAPS)]
    q, k, v, decay, beta = (drawn(ROWS, n, seed=20 + n).astype(np.float32) for n in (3, 3, 2, 1, 1))
    q_taps, k_taps, v_taps = taps
    tensors = DeltaTensors(q_taps, k_taps, v_taps, np.array([0.3]), np.array([-0.2]))
    out, _ = run_delta(op, tensors, (q, k, v, decay, beta), empty(op))
    state = np.zeros((KEY_DIM, 2))
    for row in range(ROWS):
        mixed = []
        for x, tap in zip((q, k, v), taps, strict=True):
            total = sum(tap[:, 0, TAPS - 1 - back] * x[row - back] for back in range(TAPS) if back <= row)
            mixed.append(total / (1 + np.exp(-total)))
        query, key = (one / np.sqrt((one**2).sum() + 1e-6) for one in mixed[:2])
        state = state * np.exp(-np.exp(0.3) * np.log1p(np.exp(decay[row, 0] - 0.2)))
        state = state + np.outer(key, (mixed[2] - key @ state) / (1 + np.exp(-beta[row, 0])))
        np.testing.assert_allclose(out[row], query @ state / np.sqrt(KEY_DIM), rtol=1e-5)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_steps_may_be_cut_anywhere(cut: int) -> None:
    op, given = delta(), values()
    whole, last = run_delta(op, TENSORS, given, empty(op))
    first, between = run_delta(op, TENSORS, tuple(value[:cut] for value in given), empty(op))
    second, end = run_delta(op, TENSORS, tuple(value[cut:] for value in given), between)
    assert np.concatenate([first, second]).tolist() == whole.tolist()
    assert end.tolist() == last.tolist()


def test_rates_may_be_stored_as_logarithms_or_negative() -> None:
    logs, _ = run_delta(delta(), TENSORS, values(), empty(delta()))
    negative = DeltaTensors(
        TENSORS.q_taps, TENSORS.k_taps, TENSORS.v_taps, -np.exp(TENSORS.rates), TENSORS.bias
    )
    op = delta(rates_as="negative")
    np.testing.assert_allclose(run_delta(op, negative, values(), empty(op))[0], logs, rtol=1e-6)


def test_tiled_heads_use_the_key_heads_in_turn() -> None:
    """Values whose heads are sorted the other way give the same outputs, sorted that way."""
    order = [0, 2, 1, 3]  # head h of the tiled form is this one of the grouped form

    def sorted_heads(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), HEADS, -1)[:, order].reshape(len(x), -1)

    q, k, v, decay, beta = values()
    v_taps = TENSORS.v_taps.reshape(HEADS, -1)[order].reshape(VALUES, 1, TAPS)
    tensors = DeltaTensors(TENSORS.q_taps, TENSORS.k_taps, v_taps, TENSORS.rates[order], TENSORS.bias[order])
    grouped, _ = run_delta(delta(), TENSORS, (q, k, v, decay, beta), empty(delta()))
    op = delta(tiled=True)
    tiled, _ = run_delta(
        op, tensors, (q, k, sorted_heads(v), sorted_heads(decay), sorted_heads(beta)), empty(op)
    )
    assert tiled.tolist() == sorted_heads(grouped).tolist()


def test_each_element_of_a_key_may_have_a_decay() -> None:
    """Equal decays of all elements are one decay of the head."""
    op, (*inputs, decay, beta) = delta(), values()
    one, _ = run_delta(op, TENSORS, (*inputs, decay, beta), empty(op))
    wide = np.repeat(decay, KEY_DIM, axis=1)
    bias = np.repeat(TENSORS.bias, KEY_DIM)
    tensors = DeltaTensors(TENSORS.q_taps, TENSORS.k_taps, TENSORS.v_taps, TENSORS.rates, bias)
    all_alike, _ = run_delta(op, tensors, (*inputs, wide, beta), empty(op))
    assert all_alike.tolist() == one.tolist()
    wide[:, 0] += 1
    other, _ = run_delta(op, tensors, (*inputs, wide, beta), empty(op))
    assert other.tolist() != one.tolist()
