"""Runs a job in a child process: whatever a driver does there, this process gets answers or a reason."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from typing import IO

import msgspec

from llmd.api.errors import PluginError
from llmd.host.jobs import IMPORTED, Answer, Began, Failed, Finished, Job, Measure, Probe

STDERR_TAIL_BYTES = 4096
# How long after its time limit a child ends by itself, where this process was killed and nobody else ends it.
ORPHAN_S = 5.0


def run_isolated(task: Probe | Measure, time_limit_s: float) -> list[Answer]:
    """Run a task in a child and return its answers, `Finished` left out.

    Raises:
        PluginError: the child crashed, hung, raised, or answered what is no answer; the message says which.
    """
    job = msgspec.json.encode(Job(task, tuple(sys.path), time_limit_s + ORPHAN_S))
    with tempfile.TemporaryFile() as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", "llmd.host.child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
        )  # fmt: skip
        output, in_time = _communicate(child, job, time_limit_s)
        answers = _decoded(output)
        if answers and isinstance(answers[-1], Finished):
            return answers[:-1]
        raise _error(task, child.returncode, answers, _tail(stderr), None if in_time else time_limit_s)


def _communicate(child: subprocess.Popen[bytes], job: bytes, time_limit_s: float) -> tuple[bytes, bool]:
    """What the child wrote until it ended, and whether it ended in time; whatever it started ends with it."""
    try:
        return child.communicate(job, time_limit_s)[0], True
    except subprocess.TimeoutExpired as expired:
        return expired.stdout or b"", False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()


def _decoded(output: bytes) -> list[Answer]:
    """The answers, up to a line that was cut off by the child's end.

    Raises:
        PluginError: a whole line is no answer.
    """
    decoder = msgspec.json.Decoder(Answer)
    lines = [line for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    try:
        return [decoder.decode(line) for line in lines]
    except msgspec.MsgspecError as error:
        raise PluginError(f"it answered something that is no answer: {error}", hint=_report()) from error


def _error(
    task: Probe | Measure, code: int, answers: list[Answer], stderr: str, time_limit_s: float | None
) -> PluginError:
    """Why there is no `Finished`."""
    if answers and isinstance(failed := answers[-1], Failed):
        return PluginError(failed.reason, hint=failed.mend)
    doing = next((answer.doing for answer in reversed(answers) if isinstance(answer, Began)), "started")
    # Commands import plugins in their own process, `llmd doctor` too: what ends an import ends them.
    mend = (
        f"uninstall {task.plugin.distribution}; report it to its authors" if doing == IMPORTED else _report()
    )
    if time_limit_s is not None:
        return PluginError(f"it did not finish within {time_limit_s:g} s while it {doing}", hint=mend)
    if code < 0:
        return PluginError(f"it crashed with {_signal(-code)} while it {doing}", hint=mend)
    last_words = f": {stderr}" if stderr else ""
    return PluginError(f"its process ended with status {code} while it {doing}{last_words}", hint=mend)


def _signal(number: int) -> str:
    """Name and meaning of a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:  # most real-time signals have none
        name = f"signal {number}"
    return f"{name} ({signal.strsignal(number)})"


def _tail(stderr: IO[bytes]) -> str:
    """The last line that the child wrote for people."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - STDERR_TAIL_BYTES))
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _report() -> str:
    return "check the driver; `llmd doctor` tries it again; report it to the plugin's authors if it stays"
