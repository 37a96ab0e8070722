"""Probes of this machine's devices, made once by each process of tests, for caches that would begin empty."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

from llmd.engine.composition import make_host
from llmd.host.states import DESCRIPTION, PROBE


def seed_cache(cache: Path) -> None:
    """Copy the probes and descriptions of all installed plugins into a cache, unless it has some.

    A daemon whose cache is empty spends four times the processor time until it is ready.
    """
    if not (cache / PROBE).exists():
        for kind in (DESCRIPTION, PROBE):
            shutil.copytree(Path(_probed().name) / kind, cache / kind, dirs_exist_ok=True)


@functools.cache
def _probed() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="llmd-probed-")
    host = make_host(Path(folder.name))
    host.devices()
    host.plugins()
    return folder
