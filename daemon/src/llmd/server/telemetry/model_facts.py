"""What is known of a model at one moment, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from llmd.api.messages import Load, Loaded
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction
from llmd.server.request_progress import WaitingFor
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.processor_use import OthersUse

State = Literal["", "spilled", "streamed", "throttled", "on the CPU", "memory", "slow kernels"]
"""In what a model differs from how it should run: parts are on a slower device because memory was short,
weights are copied in each step or read from the disk, steps are slower than predicted, it is not on a card
that is there, it takes more or less memory than planned, or a device uses slower kernels than usual. Empty:
the sentence is about something else."""


class Verdict(Struct, frozen=True):
    """One sentence for people. ``warn``: something is wrong, or slower than it has to be."""

    level: Literal["info", "warn"]
    text: str
    state: State = ""
    fix: str = ""
    """What to do; commands stand between backticks. It may be part of the text instead."""


class SingleSteps(Struct, frozen=True):
    """Steps of one sequence without prefill."""

    count: int
    step_s: float
    """Mean seconds of a step."""
    kv_bytes: float
    """Mean bytes of keys and values that a step has read."""
    stages_s: tuple[float, ...] = ()
    """Mean seconds that each stage of a divided model has worked on a step; empty: not known."""


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known of a model at one moment."""

    name: str
    error: str = ""
    """Why it cannot answer."""
    loaded: Loaded | None = None
    slots: int = 0
    asked: Load | None = None
    """What the user has set."""
    lost: Sequence[str] = ()
    """Devices that its engine has lost."""
    prediction: Prediction | None = None
    """What it should take by the measured rates."""
    waits_for: Sequence[str] = ()
    """Models whose memory it waits for."""
    waiting: Mapping[WaitingFor, int] = {}
    """Number of requests by what they wait for."""
    oldest_wait_s: float = 0.0
    """How long the oldest request has waited that has not begun to run."""
    report: Report | None = None
    before: Report | None = None
    """An earlier report of the same engine."""
    seconds: float = 0.0
    """Time between the two reports."""
    restarts: int = 0
    last_end: str = ""
    """How the last engine that died has ended."""
    devices: DeviceFacts = DeviceFacts()
    others: OthersUse | None = None
    """Processors that other programs use; None: unknown."""

    @property
    def chosen_device(self) -> bool:
        """Whether the user has chosen its devices."""
        return self.asked is not None and (bool(self.asked.stages) or self.asked.device != "auto")

    @property
    def device_names(self) -> tuple[str, ...]:
        """The devices that have parts of it."""
        return self.loaded.devices if self.loaded else ()

    def single_steps(self) -> SingleSteps | None:
        """Return the steps of one sequence since the earlier report, or since the load if there is none.

        None: there were none, or larger ones were among them, whose keys and values cannot be told apart.
        """
        if self.report is None:
            return None
        before = self.before
        count = self.report.single_steps - (before.single_steps if before else 0)
        if not count or self.report.decode_steps - (before.decode_steps if before else 0) != count:
            return None
        return SingleSteps(
            count,
            (self.report.single_s - (before.single_s if before else 0.0)) / count,
            (self.report.decode_kv_bytes - (before.decode_kv_bytes if before else 0)) / count,
            self._stages_s(self.report, before),
        )

    @staticmethod
    def _stages_s(report: Report, before: Report | None) -> tuple[float, ...]:
        """Return the mean seconds of each stage since the earlier report, or since the model was placed."""
        count, earlier = report.timed_steps, (0.0,) * len(report.stages_s)
        if before and before.timed_steps < count and len(before.stages_s) == len(earlier):
            count, earlier = count - before.timed_steps, before.stages_s
        return tuple((now - then) / count for now, then in zip(report.stages_s, earlier, strict=True))
