"""Device benchmarks, run in a child process, cached by fingerprint and checked at each start."""

from __future__ import annotations

import functools
import math

import msgspec

from llmd.api.device import DeviceProfile
from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.fingerprint import benchmark_fingerprint, machine_fingerprint
from llmd.host.isolation import run_isolated
from llmd.host.jobs import Measure, Measured
from llmd.process.limits import TimeLimit

BENCHMARK = "benchmark"
CHECK_BUDGET_S = 0.3
FULL_BUDGET_S = 3.0 - CHECK_BUDGET_S  # a full measurement follows a check
DRIFT = 0.15


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
        check = measure_now(device, CHECK_BUDGET_S)
        stored = self._stored(device)
        if stored and not drifted(stored.check, check):
            return stored.profile
        entry = _Entry(measure_now(device, FULL_BUDGET_S), check)
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


def measure_now(device: DeviceState, budget_s: float) -> DeviceProfile:
    """Benchmark a device in a child process for about ``budget_s`` seconds.

    Raises:
        PluginError: the child crashed, hung, raised an error, or returned no measurement.
    """
    task = Measure(device.plugin, device.backend, device.info.name, budget_s)
    for answer in run_isolated(task, benchmark_limit(budget_s)):
        if isinstance(answer, Measured):
            return answer.profile
    raise PluginError(
        f"device {device.info.name} was not measured", hint="run `llmd doctor` to check the device"
    )


def drifted(known: DeviceProfile, now: DeviceProfile) -> bool:
    """Whether a rate differs by more than `DRIFT`, or the measured formats differ."""
    if known.decode_bytes_per_s.keys() != now.decode_bytes_per_s.keys():
        return True
    pairs = [
        (known.read_bytes_per_s, now.read_bytes_per_s),
        (known.prefill_flops_per_s, now.prefill_flops_per_s),
        *(
            (known.decode_bytes_per_s[name], now.decode_bytes_per_s[name])
            for name in known.decode_bytes_per_s
        ),
    ]
    return not all(math.isclose(before, after, rel_tol=DRIFT) for before, after in pairs)


def _key(device: DeviceState) -> str:
    return f"{device.plugin.key}.{device.info.name}"
