"""A device through Kompute: memory, dispatches, recordings and submissions. No other module knows ``kp``.

Kompute 0.9.0 has no barriers between dispatches, waits in each submission and holds the interpreter's lock
meanwhile. ``build_kompute.py`` adds what is missing. On a ``kp`` without the additions, everything between
two barriers is a submission of its own, which is slower: its end is the barrier.

Kompute enables no optional feature of a device. So shaders see 32-bit words: memory is counted in words.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from llmd.api import DeviceError, DeviceLostError, DeviceMemoryError, LlmdError, MemoryBudgetError
from llmd.api.spans import Span
from llmd_backend_vulkan.commands import (
    WORD,
    Buffer,
    Copy,
    Dispatch,
    Segment,
    Slot,
    Submission,
    submissions_of,
)
from llmd_backend_vulkan.shaders import spirv
from llmd_backend_vulkan.vulkan import PhysicalDevice

ADDITIONS = 2
"""The version of the additions that this module is written for (``kp.LLMD_ADDITIONS``)."""

log = logging.getLogger(__name__)

BUILD = f"{shlex.quote(sys.executable)} -m llmd_backend_vulkan.build_kompute"
"""The command that builds Kompute with the additions."""
_FEWEST_WORDS = 4
_SOON_S = 60.0
"""For submissions that are almost empty."""

_ABANDONED: list[object] = []
"""What a device that is lost may still use. It is never freed."""


class Queued(msgspec.Struct, frozen=True):
    """A submission that Kompute has recorded."""

    sequence: Any
    """Of Kompute."""
    submission: Submission
    queue: int
    """Index in `PhysicalDevice.queues`."""
    stamps: Any = None
    """Times of the device before the first piece and after each one; None: they are not kept."""


class Recording:
    """Segments that can be submitted again and again."""

    def __init__(self, runtime: Runtime, queued: Sequence[Queued], *, keeps_times: bool) -> None:
        self._runtime = runtime
        self._queued = queued
        self._keeps_times = keeps_times
        self._host_times: list[tuple[float, float]] = []
        """Of each submission, if the host waits for it."""
        self._is_running = False

    @property
    def submissions(self) -> Sequence[Submission]:
        """What a run submits, in order."""
        return [one.submission for one in self._queued]

    def submit(self) -> None:
        """Run it after everything that was submitted before; do not wait, if Kompute has our additions.

        Raises:
            DeviceLostError: the device is gone.
            DeviceMemoryError: it has too little memory.
            ValueError: it was submitted, and not waited for.
        """
        if self._is_running:
            raise ValueError("this recording is running")
        self._is_running = self._runtime.has_additions
        self._host_times.clear()
        for one in self._queued:
            start_s = time.perf_counter()
            self._runtime.submit(one)
            self._host_times.append((start_s, time.perf_counter()))

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has run; return False if that takes longer.

        Raises:
            DeviceLostError: the device is gone.
        """
        if not self._is_running:
            return True
        end = time.monotonic() + timeout_s
        if not all(self._runtime.wait(one, max(0.0, end - time.monotonic())) for one in self._queued):
            return False
        self._is_running = False
        return True

    def run(self, timeout_s: float, what: str = "answer") -> None:
        """Submit it and wait; ``what`` says what a device that takes longer did not do.

        Raises:
            DeviceLostError: the device is gone, or took longer.
        """
        self.submit()
        if not self.wait(timeout_s):
            self._runtime.abandon(self)
            raise self._runtime.lost(f"it did not {what} within {timeout_s:g} s")

    def spans(self, seconds: Callable[[int, int], float]) -> list[Span]:
        """Return when its pieces ran, after it has run; none unless it was recorded to keep times.

        ``seconds`` returns the time of ``time.perf_counter`` at some ticks of a queue.
        """
        if not self._keeps_times:
            return []
        found: list[Span] = []
        for one, host_times in zip(self._queued, self._host_times, strict=True):
            labels = [(piece.kind, piece.name) for piece in one.submission.pieces]
            labels += [("weights", one.submission.name)] if one.submission.copies else []
            if one.stamps is None:
                times = [host_times[0], *[host_times[1]] * len(labels)]  # a phase, thus one piece
            else:
                times = [seconds(one.queue, ticks) for ticks in one.stamps.read()]
            found += [
                Span(kind, name, *both)
                for (kind, name), both in zip(labels, itertools.pairwise(times), strict=True)
            ]
        return found


class Runtime:
    """An open device. Everything runs in order of submission."""

    def __init__(self, device: PhysicalDevice, name: str, *, use_additions: bool = True) -> None:
        """Open a device; ``name`` is its name in llmd.

        Raises:
            DeviceError: Kompute is missing or cannot open the device.
        """
        self._kp = kompute()
        self.name = name
        self.device = device
        self.has_additions = use_additions and getattr(self._kp, "LLMD_ADDITIONS", 0) == ADDITIONS
        """Whether submissions return at once, and barriers need no submission."""
        if use_additions and not self.has_additions:
            log.warning(
                "Kompute lacks llmd's additions of version %d, so steps take longer: build it with `%s`",
                ADDITIONS,
                BUILD,
            )
        self.most_words = min(device.most_range_bytes, device.most_allocation_bytes, (1 << 32) - 4) // WORD
        """Most words of a buffer."""
        self.is_lost = False
        """Whether the device is gone: from then on, nothing of it is freed."""
        self._num_buffers = 0
        self._algorithms: dict[tuple[object, ...], Any] = {}
        self.num_submissions = 0
        """How many submissions there were."""
        with self._errors():
            self._manager = self._kp.Manager(device.index, list(device.queues))
            found = self._manager.get_device_properties()["device_name"]
        if found != device.name:
            raise DeviceError(
                f"{name} is {device.name}, but Kompute opened {found}",
                hint="unset variables that change the order of Vulkan's devices, such as MESA_VK_DEVICE_SELECT",
            )

    def allocate(self, num_words: int) -> Buffer:
        """Take memory of the device; its contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough, or a buffer cannot be that large.
        """
        return self._buffer(num_words, is_host=False)

    def host(self, num_words: int) -> Buffer:
        """Take memory of the host that shaders can read and write.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        return self._buffer(num_words, is_host=True)

    def free(self, buffer: Buffer) -> None:
        """Forget the shaders that are prepared for a buffer; it is freed with the last reference to it."""
        if self.is_lost:
            self.abandon(buffer)
        for key in [key for key in self._algorithms if buffer.number in key[1]]:  # type: ignore[operator]
            del self._algorithms[key]

    def record(self, phases: Sequence[Sequence[Dispatch]]) -> Recording:
        """Record phases, as `record_segments` does."""
        return self.record_segments([Segment(phases)])

    def record_segments(self, segments: Sequence[Segment], *, keeps_times: bool = False) -> Recording:
        """Record segments; with ``keeps_times``, `Recording.spans` says when they ran.

        Segments with slots need our additions to Kompute.

        Raises:
            DeviceMemoryError: there is too little memory.
            DeviceError: a shader cannot be prepared.
        """
        with self._errors():
            queued = [
                self._queued(one, keeps_times=keeps_times and self.has_additions)
                for one in submissions_of(segments, has_barriers=self.has_additions)
            ]
            return Recording(self, queued, keeps_times=keeps_times)

    def slot(self) -> Slot:
        """Return a slot that may be filled; it needs our additions to Kompute."""
        with self._errors():
            slot = Slot(self._kp.LlmdSemaphore(self._manager), self._kp.LlmdSemaphore(self._manager))
            freeing = self._queued(Submission(signals=(slot.freed,)))
            self.submit(freeing)
            self.wait(freeing, _SOON_S)
        return slot

    def ticks(self, queue: int) -> int:
        """Wait until the device has done what was submitted to a queue; return the time on its clock."""
        with self._errors():
            stamped = self._queued(Submission(), queue=queue, keeps_times=True)
            self.submit(stamped)
            self.wait(stamped, _SOON_S)
            return int(stamped.stamps.read()[0])

    def run(self, phases: Sequence[Sequence[Dispatch]], timeout_s: float = 600.0) -> None:
        """Record dispatches, run them once and wait.

        Raises:
            DeviceLostError: the device is gone, or took longer.
        """
        self.record(phases).run(timeout_s)

    def submit(self, queued: Queued) -> None:
        """Submit what was recorded."""
        self.num_submissions += 1
        with self._errors():
            if self.has_additions:
                submission = queued.submission
                self._kp.llmd_submit(queued.sequence, submission.waits, submission.signals)
            else:
                queued.sequence.eval()

    def wait(self, queued: Queued, timeout_s: float) -> bool:
        """Wait for a submission; return whether it has ended in time."""
        with self._errors():
            return bool(self._kp.llmd_wait(queued.sequence, min(int(timeout_s * 1e9), (1 << 63) - 1)))

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a device that does not answer; nothing of it is freed from now on."""
        self.is_lost = True
        self.abandon(self._manager, self._algorithms)
        return DeviceLostError(what, devices=(self.name,))

    def abandon(self, *objects: object) -> None:
        """Keep objects until the process ends, as a device that is lost may still use them."""
        _ABANDONED.extend(objects)

    def _buffer(self, num_words: int, *, is_host: bool) -> Buffer:
        if num_words > self.most_words:
            raise MemoryBudgetError(
                f"{self.name} has buffers of at most {self.most_words * WORD} bytes, and {num_words * WORD} are needed",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        needed, kinds = max(num_words, _FEWEST_WORDS), self._kp.TensorTypes
        # Kompute makes memory of the device that cannot be copied.
        is_ours = self.has_additions and not is_host
        try:
            with self._errors():
                contents = np.empty(_FEWEST_WORDS if is_ours else needed, np.uint32)
                tensor = self._manager.tensor_t(contents, kinds.host if is_host else kinds.storage)
                if is_ours:
                    self._kp.llmd_allocate(tensor, needed)
        except DeviceMemoryError as error:
            raise MemoryBudgetError(
                error.message, hint="use a smaller model, or lower --kv-memory"
            ) from error
        self._num_buffers += 1
        return Buffer(tensor, self._num_buffers, num_words)

    def _queued(self, one: Submission, *, queue: int = 0, keeps_times: bool = False) -> Queued:
        """Record a submission; copies run on a queue of their own if there is one."""
        if one.copies:
            queue = len(self.device.queues) - 1
        sequence = self._manager.sequence(queue)
        groups = [[self._copy(copy) for copy in one.copies]] if one.copies else []
        groups += [self._operations(piece.phases) for piece in one.pieces]
        stamps = self._kp.LlmdStamps(self._manager, 1 + len(groups)) if keeps_times else None
        for number, operations in enumerate([[], *groups]):
            for operation in operations:
                sequence.record(operation)
            if stamps is not None:
                sequence.record(self._kp.LlmdStamp(stamps, number, bool(one.copies)))
        if self.has_additions and not one.copies:
            sequence.record(self._kp.LlmdBarrier())  # the host reads what was written
        return Queued(sequence, one, queue, stamps)

    def _operations(self, phases: Sequence[Sequence[Dispatch]]) -> list[Any]:
        """Return the operations of Kompute for some phases."""
        found: list[Any] = []
        for phase in phases:
            found += [self._kp.LlmdBarrier()] if self.has_additions else []
            found += [self._dispatch(one) for one in phase]
        return found

    def _copy(self, one: Copy) -> Any:
        places = (one.source.tensor, WORD * one.at, one.target.tensor, WORD * one.target_at)
        return self._kp.LlmdCopy(*places, WORD * one.num_words)

    def _dispatch(self, one: Dispatch) -> Any:
        constants = np.array(one.constants, np.uint32)
        if self.has_additions:
            return self._kp.LlmdDispatch(self._algorithm(one, None), constants.tobytes(), one.groups)
        return self._kp.OpAlgoDispatch(self._algorithm(one, one.groups), constants)

    def _algorithm(self, one: Dispatch, groups: tuple[int, int, int] | None) -> Any:
        """Return the prepared shader; Kompute binds its buffers, and without additions its work groups."""
        key = (one.shader, tuple(buffer.number for buffer in one.buffers), len(one.constants), groups)
        if key not in self._algorithms:
            self._algorithms[key] = self._manager.algorithm(
                [buffer.tensor for buffer in one.buffers],
                spirv(one.shader.name),
                groups or (1, 1, 1),
                np.array(one.shader.constants, np.uint32),
                np.zeros(len(one.constants), np.uint32),
            )
        return self._algorithms[key]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of Vulkan that Kompute passes on into those of llmd."""
        try:
            yield
        except LlmdError:
            raise
        except (RuntimeError, MemoryError) as error:
            raise self._failure(str(error)) from error

    def _failure(self, text: str) -> DeviceError:
        if "DeviceLost" in text:
            return self.lost("the driver lost the device")
        if "OutOfDeviceMemory" in text or "OutOfHostMemory" in text or "bad_alloc" in text or not text:
            return DeviceMemoryError(f"{self.name} has too little memory", hint="lower --kv-memory")
        return DeviceError(f"{self.name} failed: {text}", hint="see whether `vulkaninfo` works")


def kompute() -> Any:
    """Return the module ``kp``.

    Raises:
        DeviceError: it is missing.
    """
    try:
        import kp
    except ImportError as error:
        raise DeviceError(
            f"Kompute cannot be imported: {error}",
            hint=f"build it with `{BUILD}`",
        ) from error
    return kp
