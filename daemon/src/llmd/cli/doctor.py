"""``llmd doctor``: checks everything afresh and suggests fixes."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.errors import ConfigError
from llmd.cli.composition import build_host, build_store
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.plugins.listing import missing_plugins
from llmd.cli.plugins.notices import repair_interrupted
from llmd.cli.settings import build_settings
from llmd.config import Directories
from llmd.host.devices import DeviceState, best
from llmd.host.old_keys import with_old_keys
from llmd.host.states import PluginState
from llmd.registry.pulled_models import PulledModels

EXIT_CHECK_FAILED = 8
WRITTEN_BYTES = 4096
FULL = (errno.ENOSPC, errno.EDQUOT)


class Check(msgspec.Struct, frozen=True):
    """The result of one check."""

    id: str
    status: Literal["ok", "warn", "fail"]
    seen: str
    fix: str = ""


SYMBOLS = {"ok": "✓ ok", "warn": "! warn", "fail": "✗ fail"}
COLUMNS = (
    Column[Check]("CHECK", lambda check: check.id),
    Column[Check]("STATUS", lambda check: SYMBOLS[check.status], lambda check: check.status),
    Column[Check]("SEEN", lambda check: check.seen),
    Column[Check]("FIX", lambda check: check.fix, old_title="MEND"),
)


@click.command()
@listing_options
@click.pass_context
def command(ctx: click.Context, /, **view: Any) -> None:
    """Check this installation and suggest fixes.

    Every plugin is described and probed again; stored results are ignored. Exits with 8 if a check fails.
    """
    repair_interrupted()
    host = build_host()
    states = (*host.examine(), *missing_plugins())
    directories = Directories.of(os.environ)
    checks = [
        Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}"),
        *(folder_check(written) for written in written_folders(directories)),
        settings_check(),
        pulls_check(directories.models),
        *plugin_checks(states),
        *device_checks(host.devices()),
    ]
    show(View(**view), "checks", checks, COLUMNS, with_old_keys)
    ctx.exit(EXIT_CHECK_FAILED if any(check.status == "fail" for check in checks) else 0)


class WrittenFolder(msgspec.Struct, frozen=True):
    """A folder that llmd writes to."""

    name: str
    path: Path
    use: str
    """What llmd stores there."""
    low_bytes: int
    """Warn if fewer bytes are free."""


def written_folders(directories: Directories) -> list[WrittenFolder]:
    """Return every folder that llmd writes to, whether or not it exists."""
    large, small = 1 << 30, 16 << 20
    return [
        WrittenFolder("models", directories.models, "pulled models", large),
        WrittenFolder("cache", directories.cache, "probe results, weights and prompts", large),
        WrittenFolder("state", directories.state, "the log of a background daemon", small),
        WrittenFolder("config", directories.config, "API keys", small),
        WrittenFolder("run", directories.user_socket.parent, "the daemon's socket", small),
        WrittenFolder("temporary", Path(os.environ.get("TMPDIR") or "/tmp"), "the output of probes", small),  # noqa: S108
    ]


def free_bytes(folder: Path) -> int:
    """Return the bytes that this user may still write to the disk of a folder."""
    return shutil.disk_usage(folder).free


def folder_check(written: WrittenFolder, free: Callable[[Path], int] = free_bytes) -> Check:
    """Check that a folder, or its nearest existing parent, is writable and has space."""
    name = f"folder:{written.name}"
    there = next(folder for folder in (written.path, *written.path.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(bytes(WRITTEN_BYTES))
        left = free(there)
    except OSError as error:
        seen = f"{there} cannot be written: {error.strerror}"
        if error.errno in FULL:
            return Check(name, "fail", seen, f"free space on its disk: the folder holds {written.use}")
        return Check(name, "warn", seen, f"make {there} writable: it holds {written.use}")
    seen = f"{written.path}, {format_bytes(left)} free"
    if left < written.low_bytes:
        return Check(name, "warn", seen, f"free space on its disk: the folder holds {written.use}")
    return Check(name, "ok", seen)


def settings_check() -> Check:
    """Check the setting variables and files: an invalid value makes every other command fail."""
    try:
        settings = build_settings(None)
    except ConfigError as error:
        return Check("settings", "fail", error.message, error.hint)
    if settings.unknown:
        names = ", ".join(variable.name for variable in settings.unknown)
        hint = "; ".join(dict.fromkeys(variable.hint for variable in settings.unknown))
        return Check("settings", "warn", f"variables that are not settings: {names}", hint)
    unknown = settings.models.keys() - build_store(settings.directories).directories().keys()
    if unknown:
        seen = f"the configuration names models that are not installed: {', '.join(sorted(unknown))}"
        return Check("settings", "warn", seen, "use the names that `llmd list` shows, or pull the models")
    origins = [settings.origins, *settings.models.values()]
    given = [one.source for some in origins for one in some.values() if one.source != "default"]
    return Check("settings", "ok", f"from {', '.join(dict.fromkeys(given))}" if given else "all are defaults")


def pulls_check(models: Path) -> Check:
    """Check for files left by unfinished pulls."""
    parts = PulledModels(models).blobs.unfinished()
    if not parts:
        return Check("pulls", "ok", "none is unfinished")
    return Check(
        "pulls",
        "warn",
        f"{len(parts)} files of unfinished pulls take {format_bytes(sum(parts))}",
        "pull the model again to resume; pull and rm delete such files after a week",
    )


def plugin_checks(states: Sequence[PluginState]) -> Iterator[Check]:
    for state in states:
        name = f"plugin:{state.name}"
        if state.state == "failed":
            yield Check(name, "fail", f"{state.distribution} {state.version}: {state.reason}", state.fix)
        elif state.state == "missing":
            yield Check(name, "warn", state.reason, state.fix)
        elif state.state == "disabled":
            yield Check(name, "ok", f"{state.distribution} {state.version}: {state.reason}")
        else:
            yield Check(name, "ok", f"{state.distribution} {state.version}")


def device_checks(devices: Sequence[DeviceState]) -> Iterator[Check]:
    """Check each device, and that one can be used. A device that calls itself unusable is only a warning."""
    for device in devices:
        name, info = f"device:{device.info.name}", device.info
        if device.ok:
            yield Check(name, "ok", info.description or info.kind)
        else:
            yield Check(name, "warn" if info.score <= 0 else "fail", device.reason, device.fix)
    if chosen := best(devices):
        yield Check("devices", "ok", f"{chosen.info.name} is the default")
    else:
        yield Check(
            "devices", "fail", "no device can be used", "fix a device above, or reinstall llmd-daemon"
        )
