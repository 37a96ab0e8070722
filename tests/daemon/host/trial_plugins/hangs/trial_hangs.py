"""A plugin whose driver never answers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NoReturn

from llmd.api import Backend, hookimpl

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend("hangs", probe=wait_forever, open=wait_forever, probe_timeout_s=1.0)]


def wait_forever(*_: object) -> NoReturn:
    threading.Event().wait()
    raise AssertionError("nobody sets this event")
