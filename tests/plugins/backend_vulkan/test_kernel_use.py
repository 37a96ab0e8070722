"""What a stage says of its shaders."""

from __future__ import annotations

from typing import Any

from llmd_backend_vulkan.kernel_use import kernel_use


class FakeRuntime:
    """What is asked of a runtime."""

    def __init__(self, *, has_additions: bool, queues: tuple[int, ...] = (0,)) -> None:
        self.has_additions = has_additions
        self.device = self
        self.queues = queues


def use_of(*, has_additions: bool, streams: bool = False, queues: tuple[int, ...] = (0,)) -> Any:
    runtime: Any = FakeRuntime(has_additions=has_additions, queues=queues)
    return kernel_use(runtime, streams=streams)


def test_kompute_without_additions_is_slow() -> None:
    assert use_of(has_additions=True).slow == ()
    (path,) = use_of(has_additions=False).slow
    assert path.what == "waits for each phase of a step, because Kompute lacks llmd's additions"
    assert "build_kompute" in path.fix


def test_where_streamed_weights_are_copied_is_named() -> None:
    assert use_of(has_additions=True, streams=True, queues=(0, 0)).names[-1].endswith("on a second queue")
    assert use_of(has_additions=True, streams=True).names[-1].endswith("on the queue that computes")
    assert use_of(has_additions=False, streams=True).names[-1].endswith("are read from main memory")
