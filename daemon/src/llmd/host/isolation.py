"""Runs a job in a child process: whatever a driver does there,
the caller gets answers or an error with the reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, cast

import msgspec

from llmd.api.errors import PluginError
from llmd.host.jobs import IMPORTED, ORPHAN_S, Answer, Began, Failed, Finished, Job, Measure, Probe
from llmd.process.frames import FrameDecoder, FrameError
from llmd.process.limits import MachineLoad, TimeLimit, TimeSpent, delayed_seconds, processor_seconds

STDERR_TAIL_BYTES = 4096
READ_BYTES = 1 << 16


class OverrunError(PluginError):
    """A child reached a time limit, and not because the machine was busy."""


class BusyMachineError(PluginError):
    """A child spent most of its time waiting for a processor, which says nothing about its plugin."""


def run_isolated(task: Probe | Measure, limit: TimeLimit, overlay: tuple[str, ...] = ()) -> list[Answer]:
    """Run a task in a child and return its answers without `Finished`. Modules in the folders ``overlay`` win
    over installed ones.

    Raises:
        PluginError: the child crashed, raised, or sent an invalid answer; the message says which.
        OverrunError: the child reached the limit of a step; ``limit`` is that of the first one.
        BusyMachineError: other processes left the child too little processor time.
    """
    job = msgspec.msgpack.encode(Job(task, tuple(sys.path), overlay, limit.wall_s + ORPHAN_S))
    with tempfile.TemporaryFile() as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", "llmd.host.child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
        )  # fmt: skip
        answers, overrun = _communicate(child, job, limit)
        if answers and isinstance(answers[-1], Finished):
            return answers[:-1]
        if overrun and not (answers and isinstance(answers[-1], Failed)):
            raise overrun_error(overrun.limit, overrun.spent, MachineLoad.now(), _last_begun(answers), task)
        raise _error(task, child.returncode, answers, _tail(stderr))


class _Step:
    """The step of a child that a limit holds for."""

    def __init__(self, process_id: int, limit: TimeLimit) -> None:
        self.limit = limit
        self._process_id = process_id
        self._start = self._now()

    @property
    def spent(self) -> TimeSpent:
        """The time that the step has taken so far."""
        start, now = self._start, self._now()
        return TimeSpent(
            now.processor_s - start.processor_s, now.wall_s - start.wall_s, now.delayed_s - start.delayed_s
        )

    def _now(self) -> TimeSpent:
        return TimeSpent(
            processor_seconds(self._process_id) or 0.0, time.monotonic(), delayed_seconds(self._process_id)
        )


class _Overrun(msgspec.Struct, frozen=True):
    """A limit that a child reached, and the time that it took."""

    limit: TimeLimit
    spent: TimeSpent


def _communicate(
    child: subprocess.Popen[bytes], job: bytes, limit: TimeLimit
) -> tuple[list[Answer], _Overrun | None]:
    """Return the child's complete answers, and the limit that it reached, if any.
    Kills the child's process group.

    Raises:
        PluginError: a complete frame is not an answer.
    """
    assert child.stdin, "a pipe"
    assert child.stdout, "a pipe"
    decoder = FrameDecoder(cast("type[Answer]", Answer))
    answers: list[Answer] = []
    step = _Step(child.pid, limit)
    try:
        with contextlib.suppress(BrokenPipeError), child.stdin:
            child.stdin.write(job)
        while not step.limit.is_reached(spent := step.spent):
            if not select.select([child.stdout], [], [], step.limit.wait_s(spent))[0]:
                continue
            if not (received := os.read(child.stdout.fileno(), READ_BYTES)):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(ORPHAN_S)
                return answers, None
            for answer in decoder.feed(received):
                answers.append(answer)
                if isinstance(answer, Began) and answer.limit:
                    step = _Step(child.pid, answer.limit)
        return answers, _Overrun(step.limit, spent)
    except FrameError as error:
        raise PluginError(f"it sent an invalid answer: {error}", hint=_advice("")) from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def overrun_error(
    limit: TimeLimit, spent: TimeSpent, load: MachineLoad, step: Began, task: Probe | Measure
) -> PluginError:
    """Return why a child was killed: it computed or waited too long,
    or other processes left it too little time.
    """
    if spent.wall_s < limit.wall_s:
        used = f"it used {spent.processor_s:.1f} s of processor time while it {step.doing}"
        return OverrunError(f"{used}; the limit is {limit.processor_s:g} s", hint=_fix(task, step))
    reason = (
        f"it did not finish within {limit.wall_s:g} s while it {step.doing}: "
        f"it had used {spent.processor_s:.1f} s of processor time and waited {spent.delayed_s:.1f} s for a processor; {load}"
    )
    if spent.is_starved:
        return BusyMachineError(reason, hint="run `llmd doctor` again when the machine is less busy")
    return OverrunError(reason, hint=_fix(task, step))


def _error(task: Probe | Measure, code: int, answers: list[Answer], stderr: str) -> PluginError:
    """Return the error of a child that did not send `Finished`."""
    if answers and isinstance(failed := answers[-1], Failed):
        return PluginError(failed.reason, hint=failed.fix)
    step = _last_begun(answers)
    if code < 0:
        return PluginError(f"it crashed with {_signal(-code)} while it {step.doing}", hint=_fix(task, step))
    last_words = f": {stderr}" if stderr else ""
    return PluginError(
        f"its process ended with status {code} while it {step.doing}{last_words}", hint=_fix(task, step)
    )


def _last_begun(answers: list[Answer]) -> Began:
    """Return what the child was doing when it ended."""
    return next((answer for answer in reversed(answers) if isinstance(answer, Began)), Began("started"))


def _fix(task: Probe | Measure, step: Began) -> str:
    """Return the hint for a child that crashed or hung."""
    if step.doing == IMPORTED:
        # All commands import plugins in their own process, `llmd doctor` too:
        # a crash on import would crash them.
        return f"run `llmd plugins uninstall {task.plugin.distribution}`; report it to its authors"
    return _advice(step.driver)


def _signal(number: int) -> str:
    """Return the name and meaning of a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        name = f"signal {number}"
    return f"{name} ({signal.strsignal(number)})"


def _tail(stderr: IO[bytes]) -> str:
    """Return the last line of the child's standard error."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - STDERR_TAIL_BYTES))
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _advice(driver: str) -> str:
    check = f"check {driver}; " if driver else ""
    return f"{check}`llmd doctor` tries it again; if it fails again, report it to the plugin's authors"
