"""What layers with states share: their memory, and how much a row changes them."""

from __future__ import annotations

import numpy as np

from llmd.api import StageLimits
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for
from llmd.testing.plans import TinyModel
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import float_word
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.ops.states import DECAYS, MIXED, SHARES, states_words

LIMITS = StageLimits(10, 1, 1)


def test_memory_is_that_of_the_largest_layer(device: VulkanDevice) -> None:
    cases = {case.name: case for case in cases_for(device.info)}
    grouped = lower(cases["gated_delta/grouped"].plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    assert states_words(grouped, LIMITS) == {MIXED: 10 * 128, DECAYS: 10 * 4, SHARES: 10 * 4}
    elements = lower(cases["gated_delta/elements"].plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    assert states_words(elements, LIMITS)[DECAYS] == 10 * 20
    plan = TinyModel().plan()
    dense = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    assert not any(states_words(dense, LIMITS).values())


def test_times_keep_their_digits_however_small_they_are(arena: Arena) -> None:
    """A time multiplies what a row writes: an error of 1e-7 would be most of the smallest ones."""
    stated = np.array([-30.0, -17.0, -9.0, -2.0, -0.1, 0.0, 0.3, 1.0, 8.0, 90.0], np.float32)
    rows, stride = len(stated), 4
    work = arena.take(64 + 3 * rows * stride)
    zeros = arena.take(64)
    arena.fill_zero(zeros)
    arena.upload(work, 0, np.array([rows], np.uint32))
    arena.upload(work, 64, np.repeat(stated[:, None], stride, axis=1))
    times, decays, shares = (work.at + 64 + place * rows * stride for place in range(3))
    constants = (
        work.at, times, stride, times, stride, decays, stride, shares, stride, 1, zeros.at, zeros.at,
        float_word(0.0), float_word(3e38),
    )  # fmt: skip
    buffers = (work.buffer, zeros.buffer, zeros.buffer)
    arena.runtime.run([[Dispatch(Shader("state_weigh", (1, 1)), buffers, constants, (1, rows, 1))]])
    found = arena.download(work, 64, 3 * rows * stride).view(np.float32).reshape(3, rows, stride)
    expected = np.logaddexp(0.0, stated.astype(np.float64))
    np.testing.assert_allclose(found[2, :, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(found[1, :, 0], np.exp(-expected), rtol=1e-4, atol=1e-30)
