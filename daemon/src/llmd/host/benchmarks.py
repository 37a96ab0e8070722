"""Device benchmarks, run in a child process, cached by fingerprint and checked at each start."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import msgspec

from llmd.api.device import DeviceProfile
from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.fingerprint import benchmark_fingerprint, machine_fingerprint
from llmd.host.isolation import run_isolated
from llmd.host.jobs import Measure, Measured
from llmd.host.names import FULL_PROFILE, SHORT_PROFILE
from llmd.process.limits import TimeLimit

BENCHMARK = "benchmark"
DRIFT = 0.15
"""Relative difference of a rate from which a device is measured in full again."""


class Measurement(msgspec.Struct, frozen=True):
    """How to measure a device."""

    profiler: str
    """See `llmd.host.jobs.Measure`."""
    budget_s: float
    """For about how long."""


CHECK = Measurement(SHORT_PROFILE, 0.3)
FULL = Measurement(FULL_PROFILE, 2.7)  # follows a check: both take about three seconds


class _Entry(msgspec.Struct, frozen=True):
    """The stored result: the full measurement and the check taken just before it."""

    profile: DeviceProfile
    check: DeviceProfile


class Benchmarks:
    """The profiles of this machine's devices."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def known(self, device: DeviceState) -> DeviceProfile | None:
        """Return the stored profile of the device for the current plugin and machine, or None."""
        entry = self._stored(device)
        return entry.profile if entry else None

    def measure(self, device: DeviceState) -> DeviceProfile:
        """Run a short check; run the full measurement if none is stored or the check shows drift.

        The check is compared with the stored check, not with the full measurement: clocks and caches behave
        differently in a short run, so its rates differ even without drift.

        Raises:
            PluginError: the device could not be opened or measured.
        """
        check = measure_now(device, CHECK)
        stored = self._stored(device)
        if stored and not drifted(stored.check, check):
            return stored.profile
        entry = _Entry(measure_now(device, FULL), check)
        self._cache.put(BENCHMARK, _key(device), self._fingerprint(device), entry)
        return entry.profile

    def _stored(self, device: DeviceState) -> _Entry | None:
        return self._cache.get(BENCHMARK, _key(device), self._fingerprint(device), _Entry)

    def _fingerprint(self, device: DeviceState) -> str:
        return benchmark_fingerprint(device.plugin, self._machine, device.info.description)

    @functools.cached_property
    def _machine(self) -> str:
        return machine_fingerprint()


def benchmark_limit(budget_s: float) -> TimeLimit:
    """Return the limit of a benchmark of ``budget_s`` seconds, which opens the device first."""
    return TimeLimit(processor_s=budget_s + 30.0, wall_s=budget_s + 60.0)


def measure_now(device: DeviceState, how: Measurement) -> DeviceProfile:
    """Measure a device in a child process.

    Raises:
        PluginError: the child crashed, hung, raised an error, or returned no measurement.
    """
    task = Measure(device.plugin, device.backend, device.info.name, how.profiler, how.budget_s)
    for answer in run_isolated(task, benchmark_limit(how.budget_s)):
        if isinstance(answer, Measured):
            return answer.profile
    raise PluginError(
        f"device {device.info.name} was not measured", hint="run `llmd doctor` to check the device"
    )


def drifted(known: DeviceProfile, now: DeviceProfile) -> bool:
    """Whether a rate differs by more than `DRIFT`, or other rates were measured."""
    before, after = dict(_rates(known)), dict(_rates(now))
    return before.keys() != after.keys() or not all(
        math.isclose(before[name], after[name], rel_tol=DRIFT) for name in before
    )


def _rates(profile: DeviceProfile) -> Iterator[tuple[object, float]]:
    """Yield the rates of a short measurement, each with a name."""
    yield "read", profile.read_bytes_per_s
    yield from profile.decode_bytes_per_s.items()
    for name, by_rows in profile.prefill_flops_per_s.items():
        yield from (((name, rows), rate) for rows, rate in by_rows.items())


def _key(device: DeviceState) -> str:
    return f"{device.plugin.key}.{device.info.name}"
