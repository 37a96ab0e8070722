"""A small model on a device, whose steps are timed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from llmd.api.checks import refusals
from llmd.api.device import Device, HostHidden, StageLimits
from llmd.api.errors import DeviceError
from llmd.api.plan import ModelPlan
from llmd.api.step import BLOCK_LEN, Step
from llmd.api.tensors import Format, TensorRef
from llmd.models.arithmetic import chosen_arithmetic
from llmd.models.lowering import lower
from llmd.models.weight_formats import nearest_format
from llmd.profiling.plans import VOCAB
from llmd.profiling.repeated_source import RepeatedSource
from llmd.testing.selections import plain_selection

LIMIT_S = 20.0
"""Seconds after which a step of such a model has surely failed."""


class TimedModel:
    """A model on a device, for steps of one sequence. A context manager, which frees it."""

    def __init__(
        self,
        device: Device,
        plan: ModelPlan,
        name: Format,
        max_rows: int,
        parts: tuple[int, int] | None = None,
        streamed: Iterable[int] = (),
    ) -> None:
        """Load the model, or only some of its parts.

        ``name`` is the format of all matrices but the table of tokens; weights of ``streamed`` parts stay in
        main memory.

        Raises:
            DeviceError: the device cannot run it.
            LlmdError: the device failed, or has no memory for it.
        """
        info = device.info
        plain = nearest_format("bf16", info.formats)
        arithmetic = chosen_arithmetic(info, None)
        self.matrices: set[str] = set()
        """Names of the tensors in the format."""

        def format_of(kind: str, ref: TensorRef) -> Format:
            if kind != "linear" or len(ref.shape) != 2:
                return plain
            self.matrices.add(ref.name)
            return name

        self.program = lower(
            plan,
            *(parts or (0, len(plan.parts))),
            format_of=format_of,
            patterns=info.patterns,
            activations=arithmetic.activations,
            precision=arithmetic.precision,
            streamed=streamed,
        )
        default = StageLimits(1, 1, 1).kv_dtype
        self.kv_dtype = default if default in info.kv_dtypes else info.kv_dtypes[0]
        if refused := refusals(device, self.program):
            raise DeviceError(
                f"it cannot run a model to be measured: {refused[0].what}: {refused[0].reason}",
                hint="it can be used, but not chosen by its speed",
            )
        self._hidden = None if self.program.hidden_in is None else plan.hidden_size
        self._blocks = -(-plan.context_len // BLOCK_LEN)
        self._opened = ExitStack()
        with ExitStack() as opened:
            weights = device.load(self.program, RepeatedSource(), lambda _done, _total: None)
            opened.callback(weights.close)
            pools = {group.id: self._blocks for group in self.program.groups}
            self._stage = weights.stage(pools, StageLimits(max_rows, 1, 1, self.kv_dtype))
            opened.callback(self._stage.close)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def fill(self, rows: int, context_len: int) -> None:
        """Write keys and values into the blocks of a context, ``rows`` tokens at a time.

        The system may give memory that was never written no place of its own: reading it would be too fast.
        """
        for first in range(0, -(-context_len // BLOCK_LEN), -(-rows // BLOCK_LEN)):
            self.run(rows, 0, first)

    def step_seconds(self, rows: int, budget_s: float, position: int = 0) -> float:
        """Return the seconds of a step with rows from a position on: see `seconds_in_turns`."""
        return seconds_in_turns([self], rows, budget_s, position)[0]

    def run(self, rows: int, position: int, first_block: int = 0) -> None:
        """Run a step with rows from a position on, whose keys and values are in the blocks from one on."""
        table = np.roll(np.arange(self._blocks, dtype=np.int32), -first_block)[None]
        step = Step(
            token_ids=np.arange(rows, dtype=np.int32) % VOCAB,
            positions=np.arange(position, position + rows, dtype=np.int32),
            row_offsets=np.array([0, rows], np.int32),
            block_tables=(table,) * len(self.program.groups),
            copies=np.zeros((0, 3), np.int32),
        )
        hidden = None if self._hidden is None else HostHidden(np.ones((rows, self._hidden), np.float32))
        ticket = self._stage.submit(
            step, hidden, plain_selection([rows - 1]) if self.program.has_head else None
        )
        if self.program.has_head:
            self._stage.wait(ticket, LIMIT_S)
        else:
            self._stage.hidden(ticket).host()
        self._stage.release(ticket)


def seconds_in_turns(
    models: Sequence[TimedModel], rows: int, budget_s: float, position: int = 0
) -> list[float]:
    """Return the seconds of a step of each model with rows from a position on.

    These are medians over ``budget_s`` seconds, of one step at least. A step before them is not counted, but
    its time is. The models take turns: caches do not keep the weights of a model for its next step if there
    are others, and what slows the machine down for a while slows down all of them.
    """
    start_s = time.perf_counter()
    for model in models:
        model.run(rows, position)
    runs: list[list[float]] = []
    now_s = time.perf_counter()
    while not runs or now_s - start_s < budget_s:
        turn = []
        for model in models:
            before_s = now_s
            model.run(rows, position)
            now_s = time.perf_counter()
            turn.append(now_s - before_s)
        runs.append(turn)
    medians: list[float] = np.median(runs, axis=0).tolist()
    return medians
