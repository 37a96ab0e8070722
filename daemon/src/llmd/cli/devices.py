"""``llmd devices``: the compute devices of this machine and their speed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click
import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY, DeviceProfile
from llmd.api.errors import ConfigError, PluginError
from llmd.api.machine import available_bytes, total_bytes
from llmd.cli.composition import build_benchmarks, build_cache, build_host
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.this_machine import local_settings
from llmd.host.benchmarks import Benchmarks
from llmd.host.devices import DeviceState, FailedBackend
from llmd.host.old_keys import with_old_keys


class DeviceRow(msgspec.Struct, frozen=True):
    """One device, or a backend whose probe failed. Rates are None if they were not measured."""

    name: str
    kind: str
    description: str
    memory_bytes: int | None
    """None if the probe failed."""
    free_bytes: int | None
    """None if it is not known."""
    read_bytes_per_s: float | None
    decode_bytes_per_s: dict[str, float]
    prefill_flops_per_s: float | None
    plugin: str
    state: str
    reason: str
    fix: str
    total_bytes: int | None = None
    """Size of the memory in which it computes; devices may share it. None if the probe failed."""
    aliases: tuple[str, ...] = ()
    """Other names that may be typed, such as the UUID of a card."""


def memory(row: DeviceRow) -> str:
    """Format the free and the whole memory, or only the latter if it is not known how much is free."""
    if row.total_bytes is None:
        return ""
    total = format_bytes(row.total_bytes)
    return total if row.free_bytes is None else f"{format_bytes(row.free_bytes)} / {total}"


def described_state(row: DeviceRow) -> str:
    """Format the state with its reason and its fix."""
    words = f"{row.state}: {row.reason}" if row.reason else row.state
    return f"{words} → {row.fix}" if row.fix else words


def in_giga(rate: float | None) -> str:
    """Format a rate in units of 1e9 per second."""
    return "" if rate is None else f"{rate / 1e9:.1f}"


def prefill(row: DeviceRow) -> str:
    return "" if row.prefill_flops_per_s is None else f"{in_giga(row.prefill_flops_per_s)} GFLOP/s"


COLUMNS = (
    Column[DeviceRow]("NAME", lambda row: row.name),
    Column[DeviceRow]("KIND", lambda row: row.kind),
    Column[DeviceRow]("FREE/TOTAL", memory, lambda row: row.total_bytes or 0),
    Column[DeviceRow](
        "GB/S", lambda row: in_giga(row.read_bytes_per_s), lambda row: row.read_bytes_per_s or 0
    ),
    Column[DeviceRow]("PREFILL", prefill, lambda row: row.prefill_flops_per_s or 0),
    Column[DeviceRow]("PLUGIN", lambda row: row.plugin),
    Column[DeviceRow]("STATE", described_state),
)


@click.command()
@listing_options
def command(**view: Any) -> None:
    """List devices, their free and whole memory, their speed, and why any are not used.

    Devices that compute in main memory share it.

    Speeds are measured once and cached until the hardware, its driver or its plugin changes.
    """
    with suppress(ConfigError):  # devices are shown even if the settings are wrong
        local_settings(None, "devices")
    cache = build_cache()
    host, benchmarks = build_host(cache), build_benchmarks(cache)
    rows = [row_of(device, benchmarks) for device in host.devices()]
    rows += [failed_row(backend) for backend in host.failed_backends()]
    show(View(**view), "devices", rows, COLUMNS, with_old_keys)


def row_of(device: DeviceState, benchmarks: Benchmarks) -> DeviceRow:
    """Return the row of a device; measure the device if there is no stored result."""
    profile, trouble = _measured(device, benchmarks)
    return DeviceRow(
        name=device.info.name,
        kind=device.info.kind,
        description=device.info.description,
        memory_bytes=device.info.memory_bytes,
        free_bytes=available_bytes() if device.info.memory_id == HOST_MEMORY else None,
        read_bytes_per_s=profile.read_bytes_per_s if profile else None,
        decode_bytes_per_s=dict(profile.decode_bytes_per_s) if profile else {},
        prefill_flops_per_s=profile.fastest_prefill if profile else None,
        plugin=device.plugin.name,
        state="ok" if device.ok else "unused",
        reason=device.reason or trouble,
        fix=device.fix,
        aliases=device.info.aliases,
        total_bytes=total_bytes() if device.info.memory_id == HOST_MEMORY else device.info.memory_bytes,
    )


def failed_row(backend: FailedBackend) -> DeviceRow:
    """Return the row of a backend whose devices are not known."""
    return DeviceRow(
        name=backend.name,
        kind="",
        description="",
        memory_bytes=None,
        free_bytes=None,
        read_bytes_per_s=None,
        decode_bytes_per_s={},
        prefill_flops_per_s=None,
        plugin=backend.plugin.name,
        state="failed",
        reason=backend.failure.reason,
        fix=backend.failure.fix,
    )


def _measured(device: DeviceState, benchmarks: Benchmarks) -> tuple[DeviceProfile | None, str]:
    """Return the profile of a device, or None and why it could not be measured."""
    if not device.ok:
        return None, ""
    try:
        return profile_of(device, benchmarks), ""
    except PluginError as error:
        return None, f"not measured: {error.message}"


def profile_of(device: DeviceState, benchmarks: Benchmarks) -> DeviceProfile:
    """Return the stored profile of a device; measure the device if there is none, and say so.

    Raises:
        PluginError: it could not be measured.
    """
    if known := benchmarks.known(device):
        return known
    click.echo(f"measuring {device.info.name} …", err=True)
    return benchmarks.measure(device)
