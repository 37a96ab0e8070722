"""Measured rates of devices: taken in a child process, kept by fingerprint, checked at each start."""

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
    """What is stored: the full measurement, and the check that was taken just before it."""

    profile: DeviceProfile
    check: DeviceProfile


class Benchmarks:
    """The profiles of the devices of this machine."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def known(self, device: DeviceState) -> DeviceProfile | None:
        """The stored profile of this device, from this plugin on this machine."""
        entry = self._stored(device)
        return entry.profile if entry else None

    def measure(self, device: DeviceState) -> DeviceProfile:
        """Take a check, and the full measurement where none is stored or the check says that it has drifted.

        Checks are compared with checks: a short run has colder clocks and warmer caches than a long one, so its rates
        differ from those of the full measurement though nothing has drifted.

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
        PluginError: the child crashed, hung, raised, or measured nothing.
    """
    task = Measure(device.plugin, device.backend, device.info.name, budget_s)
    for answer in run_isolated(task, benchmark_limit(budget_s)):
        if isinstance(answer, Measured):
            return answer.profile
    raise PluginError(f"device {device.info.name} was not measured", hint="see `llmd doctor`")


def drifted(known: DeviceProfile, now: DeviceProfile) -> bool:
    """Whether a rate differs by more than `DRIFT`, or another set of formats was measured."""
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
