"""The file of the daemon's API keys."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from llmd.api.errors import ConfigError
from llmd.cli.doctor.check import Check, Surroundings, quoted
from llmd.config.keys import KeyFile

OTHERS = 0o077


def checks(around: Surroundings) -> Iterator[Check]:
    yield keys_check(around.directories.keys)


def keys_check(path: Path) -> Check:
    """Check that the file can be read, by its owner alone."""
    try:
        keys = KeyFile(path).load()
    except ConfigError as error:
        fix = f"move it away, `mv {quoted(path)} {quoted(path)}.damaged`, and create new keys with `llmd keys add NAME`"
        return Check("keys", "fail", error.message, fix)
    if keys and stat.S_IMODE(path.stat().st_mode) & OTHERS:
        return Check(
            "keys",
            "warn",
            f"{path} can be read by other users",
            f"keep it to yourself: `chmod 600 {quoted(path)}`",
        )
    return Check("keys", "ok", f"{len(keys)} keys" if keys else "none: no key is needed on this machine")
