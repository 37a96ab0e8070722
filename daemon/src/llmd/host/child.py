"""The child process that describes, probes and benchmarks plugins: ``python -m llmd.host.child``.

Reads one `Job` from standard input. Writes answers as frames to the original standard output; everything that
the plugin and its toolkit print goes to standard error.
"""

from __future__ import annotations

import ctypes
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from llmd.api.decoding import prepared
from llmd.api.device import Device, DeviceInfo, DeviceOptions
from llmd.api.errors import LlmdError, PluginError
from llmd.api.plugins import Backend
from llmd.host.description import describe
from llmd.host.devices import DeviceState
from llmd.host.jobs import (
    IMPORTED,
    ORPHAN_S,
    Answer,
    Began,
    Described,
    Failed,
    Finished,
    Found,
    Job,
    Measure,
    Measured,
    Probe,
)
from llmd.process.frames import encode_frame
from llmd.process.limits import TimeLimit

PR_SET_PDEATHSIG = 1
Trial = Callable[[Device], list[str]]


def main() -> None:
    """Run the job from standard input.
    Never returns: a driver's clean-up at exit must not undo the result.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_with_parent()
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=prepared(Job))
    set_alarm(job.alarm_s)
    with claim_stdout() as output:
        sys.path.extend(folder for folder in job.search_path if folder not in sys.path)
        sys.path[:0] = job.overlay
        for answer in answers_to(job.task):
            if isinstance(answer, Began) and answer.limit:
                set_alarm(answer.limit.wall_s + ORPHAN_S)
            output.write(encode_frame(answer))
            output.flush()
    os._exit(0)


def set_alarm(seconds: float) -> None:
    """Have SIGALRM kill this process after some seconds, even if a driver hangs."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends, since nothing reads its answers then.

    Linux only; on other systems the alarm of the job ends it. See prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def claim_stdout() -> BinaryIO:
    """Reserve standard output for answers: from here on, file descriptor 1 refers to standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


def answers_to(task: Probe | Measure) -> Iterator[Answer]:
    """Yield the answers to a task, ending with `Finished` or `Failed`."""
    try:
        yield from probe(task) if isinstance(task, Probe) else measure(task)
    except LlmdError as error:
        yield Failed(error.message, error.hint)
    except BaseException as error:  # noqa: BLE001 - plugins may raise anything, and the process ends after this
        traceback.print_exc()
        yield Failed(
            f"it raised {type(error).__name__}: {error}",
            "`llmd doctor` tries it again; if it fails again, report it to the plugin's authors",
        )
    else:
        yield Finished()


def probe(task: Probe) -> Iterator[Answer]:
    """Describe the plugin; prepare and try each of its devices."""
    yield Began(IMPORTED)
    start_s = time.perf_counter()
    description = describe(task.plugin)
    yield Described(description.summary(), time.perf_counter() - start_s)
    trial = pkgutil.resolve_name(task.trial) if task.trial else None
    for backend in description.backend:
        limit = TimeLimit.of_processor_time(backend.probe_timeout_s)
        yield Began(f"looked for devices of backend {backend.name!r}", backend.driver, limit)
        for info in checked_infos(backend.name, backend.probe()):
            wrong: list[str] = []
            if backend.prepare and info.score > 0:
                preparing = TimeLimit.of_wall_time(backend.prepare_timeout_s)
                yield Began(f"prepared device {info.name!r}", backend.driver, preparing)
                wrong = attempt("preparing", backend.prepare, info.name)
            yield Began(f"tried device {info.name!r}", backend.driver, limit)
            state = unusable(task, backend, info, wrong) if wrong else tried(task, backend, info, trial)
            yield Found(state)


def checked_infos(backend: str, returned: object) -> tuple[DeviceInfo, ...]:
    """Return the result of a probe after checking that every field has the type of the contract.

    Raises:
        PluginError: a field has another type.
    """
    try:
        return msgspec.convert(msgspec.to_builtins(returned), prepared(tuple[DeviceInfo, ...]))
    except (msgspec.MsgspecError, TypeError) as error:
        raise PluginError(
            f"the probe of backend {backend!r} did not return DeviceInfos: {error}",
            hint="see DeviceInfo in llmd.api.device; report it to the plugin's authors",
        ) from error


def tried(task: Probe, backend: Backend, info: DeviceInfo, trial: Trial | None) -> DeviceState:
    """Open and test a device; return its state."""
    if info.score <= 0:
        return DeviceState(info, backend.name, task.plugin, ok=False, reason=info.reason or "its score is 0")
    wrong = attempt("opening or trying", try_device, backend, info, trial)
    return (
        unusable(task, backend, info, wrong)
        if wrong
        else DeviceState(info, backend.name, task.plugin, ok=True, isolated=backend.isolated)
    )


def unusable(task: Probe, backend: Backend, info: DeviceInfo, wrong: list[str]) -> DeviceState:
    """Return the state of a device with these faults."""
    outdated = " or ".join(filter(None, (backend.driver, task.plugin.distribution)))
    fix = f"update {outdated}; `llmd check {info.name}` shows each case"
    return DeviceState(info, backend.name, task.plugin, ok=False, reason="; ".join(wrong), fix=fix)


def attempt(doing: str, call: Callable[..., list[str] | None], *arguments: object) -> list[str]:
    """Return the faults of a device that a call returns, or its exception as one.

    A failure of one device does not affect the others.
    """
    try:
        return call(*arguments) or []
    except Exception as error:  # noqa: BLE001 - plugins may raise anything
        traceback.print_exc()
        return [f"{doing} it raised {type(error).__name__}: {error}"]


def try_device(backend: Backend, info: DeviceInfo, trial: Trial | None) -> list[str]:
    """Return what the trial finds wrong with a device."""
    device = backend.open(info.name, DeviceOptions())
    try:
        return trial(device) if trial else []
    finally:
        device.close()


def measure(task: Measure) -> Iterator[Answer]:
    """Benchmark one device."""
    yield Began(IMPORTED)
    backend = next(one for one in describe(task.plugin).backend if one.name == task.backend)
    yield Began(f"opened device {task.device!r}", backend.driver)
    device = backend.open(task.device, DeviceOptions())
    yield Began(f"measured device {task.device!r}", backend.driver)
    yield Measured(pkgutil.resolve_name(task.profiler)(device, task.budget_s))
    device.close()


if __name__ == "__main__":
    main()
