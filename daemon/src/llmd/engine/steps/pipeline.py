"""The stages of a model in order; each stage gets the hidden states of the previous one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from llmd.api.device import HiddenRef, Stage
from llmd.api.errors import DeviceError
from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.kernel_use import KernelUse
from llmd.api.spans import Span
from llmd.api.step import LateEdits, Selection, Step, StepResult, Ticket
from llmd.engine.steps.busy_time import busy_seconds
from llmd.engine.steps.step_limit import StepTimer, StepTimes


class Pipeline:
    """The whole model, which each step runs through."""

    def __init__(
        self,
        stages: Sequence[Stage],
        kv_bytes: Sequence[Mapping[int, int]] = (),
        *,
        draws: bool = False,
        times: StepTimes | None = None,
        spans: Sequence[bool] = (),
        kernels: Callable[[], tuple[KernelUse, ...]] = tuple,
        expert_cache: Callable[[], ExpertCacheUse | None] = lambda: None,
    ) -> None:
        """``kv_bytes`` has for each stage the bytes of a block of each KV group in the stage. ``draws``: the
        device of the last stage draws tokens (`llmd.api.features.DRAWS`). ``spans``: which stages keep the
        times of steps (`StageLimits.spans`); empty: none. ``kernels`` returns the kernels of each stage,
        ``expert_cache`` the use of the experts that are not all in memory.
        """
        self.kernels = kernels
        self.expert_cache = expert_cache
        self.draws = draws
        self._keep_spans = tuple(spans) or (False,) * len(stages)
        self._stages = tuple(stages)
        self._kv_bytes = tuple(kv_bytes) or ({},) * len(self._stages)
        self._times = times or StepTimes()
        self._news_s: float | None = None

    @property
    def feeds_itself(self) -> bool:
        """Whether the stage that embeds tokens is also the stage that chooses them."""
        return len(self._stages) == 1

    def submit(self, step: Step, selection: Selection | None) -> StepTickets:
        """Queue a step on all stages; ``selection`` is None if and only if the model has no head."""
        timer = StepTimer(self._times, step.num_rows)
        tickets: list[Ticket] = []
        hidden: HiddenRef | None = None
        try:
            for stage in self._stages[:-1]:
                tickets.append(stage.submit(step, hidden, None))
                hidden = stage.hidden(tickets[-1])
            tickets.append(self._stages[-1].submit(step, hidden, selection))
        except BaseException:
            _release(self._stages, tickets)
            raise
        return StepTickets(self._stages, tickets, timer, self._keep_spans)

    def computing_s(self, num_rows: int) -> float | None:
        """Return how long a step of ``num_rows`` rows computes at most; None if none was measured."""
        return self._times.computing.expected_s(num_rows)

    def new_computing_s(self, num_rows: int) -> float | None:
        """Return the same if it has changed since the last call; otherwise None."""
        expected_s = self.computing_s(num_rows)
        if expected_s == self._news_s:
            return None
        self._news_s = expected_s
        return expected_s

    def block_bytes(self, group: int) -> int:
        """Return the bytes of a block of a KV group in all stages."""
        return sum(size for _, size in self._holders(group))

    def read_block(self, group: int, block: int) -> NDArray[np.uint8]:
        """Return the bytes of a block of a KV group in all stages, uint8. No step may be in flight."""
        blocks = np.array([block], np.int32)
        return np.concatenate([stage.read_blocks(group, blocks)[0] for stage, _ in self._holders(group)])

    def write_block(self, group: int, block: int, contents: NDArray[np.uint8]) -> None:
        """Overwrite a block with contents that `read_block` returned."""
        first = 0
        for stage, size in self._holders(group):
            stage.write_blocks(group, np.array([block], np.int32), contents[None, first : first + size])
            first += size

    def _holders(self, group: int) -> list[tuple[Stage, int]]:
        pairs = zip(self._stages, self._kv_bytes, strict=True)
        return [(stage, sizes[group]) for stage, sizes in pairs if group in sizes]

    def close(self) -> None:
        for stage in reversed(self._stages):
            stage.close()


class StepTickets:
    """One step in flight, until `release`. As a context manager, releases the step at the end."""

    def __init__(
        self, stages: Sequence[Stage], tickets: Sequence[Ticket], timer: StepTimer, keep_spans: Sequence[bool]
    ) -> None:
        self._stages = stages
        self._keep_spans = keep_spans
        self._tickets = tuple(tickets)
        self._timer = timer

    @property
    def ticket(self) -> Ticket:
        """The ticket of the last stage, which chooses tokens."""
        return self._tickets[-1]

    def apply_edits(self, edits: LateEdits) -> None:
        """Apply the edits of the late rows of the selection, in its order."""
        self._stages[-1].apply_edits(self._tickets[-1], edits)

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Apply masks to the masked rows of the selection, in its order."""
        self._stages[-1].apply_masks(self._tickets[-1], masks)

    def wait(self) -> StepResult:
        """Wait for the last stage and return its result.

        Raises:
            DeviceLostError: the device is gone, or took longer than `StepTimes.limit_s` allows.
            DeviceError: the device failed otherwise. Earlier stages hold their tickets until `release`.
        """
        try:
            result = self._stages[-1].wait(self.ticket, self._timer.limit_s)
        except DeviceError:
            # A `wait` that fails has released its ticket (see `Stage`).
            self._tickets = self._tickets[:-1]
            raise
        self._timer.stop()
        return result

    def hidden(self) -> NDArray[np.float32]:
        """Return the output of a headless model: float32 ``[rows, hidden_size]``, valid until `release`."""
        hidden = self._stages[-1].hidden(self._tickets[-1]).host()
        self._timer.stop()
        return hidden

    def edited_row(self, output: int) -> NDArray[np.float32]:
        """Return all edited logits float32 ``[vocab]`` of one output row."""
        row: NDArray[np.float32] = self._stages[-1].rows(self._tickets[-1], np.array([output], np.int32))[0]
        return row

    def raw_rows(self, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._stages[-1].raw_rows(self._tickets[-1], outputs)

    def spans(self) -> tuple[Sequence[Span], ...]:
        """Return when each stage worked on the step, which has its results; nothing of stages that do not
        keep it.
        """
        stages = zip(self._stages, self._tickets, self._keep_spans, strict=True)
        return tuple(stage.spans(ticket) if keeps else () for stage, ticket, keeps in stages)

    def stages_s(self) -> tuple[float, ...]:
        """Return the seconds that each stage worked on the step, which has its results.

        Empty if there is one stage, or one that does not say.
        """
        if len(self._stages) == 1 or not all(self._keep_spans):
            return ()
        with suppress(DeviceError):  # the next step raises it, too; the tokens of this one are valid
            return tuple(busy_seconds(spans) for spans in self.spans())
        return ()

    def release(self) -> None:
        """Release the buffers; results are invalid from now on."""
        _release(self._stages, self._tickets)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _release(stages: Sequence[Stage], tickets: Sequence[Ticket]) -> None:
    """Release the tickets of the first ``len(tickets)`` stages."""
    for stage, ticket in zip(stages, tickets, strict=False):
        stage.release(ticket)
