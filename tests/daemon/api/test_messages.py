from __future__ import annotations

import msgspec
import pytest

from llmd.api import DeviceOptions
from llmd.api.messages import Load, Loaded, StageReport


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


@pytest.mark.parametrize(
    ("context_len", "kv_tokens", "hint"),
    [(512, 64, "more --kv-memory"), (512, 512, "a larger --max-ctx (at most 1024)"), (1024, None, "")],
)
def test_hints_at_a_longer_window_are_those_that_can_work(
    context_len: int, kv_tokens: int | None, hint: str
) -> None:
    loaded = Loaded("llama", 10, context_len, 1024, 1, ("f32",), (), kv_tokens=kv_tokens, load_s=0.1)
    assert loaded.longer_window.endswith(hint)
    assert bool(loaded.longer_window) == bool(hint)


def test_a_stage_takes_its_weights_its_pools_and_a_step() -> None:
    assert StageReport("cpu", "layers 0-3", weight_bytes=100, kv_bytes=10, step_bytes=2).size_bytes == 112


def test_a_device_has_its_own_options_and_the_threads_of_the_load() -> None:
    own = DeviceOptions(memory_bytes=7, deterministic=True)
    load = Load("m", threads=3, device_options={"a": own, "b": DeviceOptions(threads=2)})
    assert load.options_of("a") == DeviceOptions(3, 7, deterministic=True)
    assert load.options_of("b").threads == 2
    assert load.options_of("c") == DeviceOptions(threads=3)


def test_limits_of_memory_lower_those_of_the_user_and_change_nothing_else() -> None:
    own = {"a": DeviceOptions(threads=1, memory_bytes=7), "b": DeviceOptions(memory_bytes=7)}
    load = Load("m", device_options=own).within({"a": 5, "b": 9, "c": 4})
    assert load.device_options == {
        "a": DeviceOptions(threads=1, memory_bytes=5),
        "b": DeviceOptions(memory_bytes=7),
        "c": DeviceOptions(memory_bytes=4),
    }
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(load), type=Load) == load
