"""The clock: certificates, keep-alive times and pulls depend on it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

import llmd
from llmd.cli.doctor.check import Check, Surroundings, quoted

TOLERANCE_S = 3600.0


def checks(around: Surroundings) -> Iterator[Check]:
    written = (
        around.directories.log,
        around.directories.keys,
        around.settings.user_file,
    )
    yield clock_check(around.now, _modified(Path(str(llmd.__file__))) or 0.0, written)


def clock_check(now: float, installed: float, written: Sequence[Path]) -> Check:
    """Check that it is later than when llmd was installed, and than when its files were written."""
    setting = "set the clock: `timedatectl set-ntp true`"
    if now < installed - TOLERANCE_S:
        return Check(
            "clock", "fail", f"it is {_date(now)}, but llmd was installed on {_date(installed)}", setting
        )
    for path in written:
        modified = _modified(path)
        if modified is not None and modified > now + TOLERANCE_S:
            seen = f"it is {_date(now)}, but {path} was changed on {_date(modified)}"
            return Check(
                "clock", "warn", seen, f"if the time is right, `touch {quoted(path)}`; if not, {setting}"
            )
    return Check("clock", "ok", _date(now))


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _date(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).astimezone().isoformat(timespec="minutes")
