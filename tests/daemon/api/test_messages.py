from __future__ import annotations

import pytest

from llmd.api.messages import Loaded, StageReport


@pytest.mark.parametrize(("kv_tokens", "window"), [(64, 64), (1000, 512), (None, 512)])
def test_the_window_is_what_the_kv_pool_leaves_of_the_context(kv_tokens: int | None, window: int) -> None:
    loaded = Loaded(
        architecture="llama",
        vocab_size=10,
        context_len=512,
        max_context_len=1024,
        num_parameters=1,
        formats=("f32",),
        stages=(),
        kv_tokens=kv_tokens,
        load_s=0.1,
    )
    assert loaded.window == window


def test_a_stage_takes_its_weights_its_pools_and_a_step() -> None:
    assert StageReport("cpu", "layers 0-3", weight_bytes=100, kv_bytes=10, step_bytes=2).size_bytes == 112
