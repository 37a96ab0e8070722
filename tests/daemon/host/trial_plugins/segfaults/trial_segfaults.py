"""A plugin whose driver crashes while it looks for devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from llmd.api import Backend, hookimpl

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend("segfaults", probe=crash, open=crash)]


def crash(*_: object) -> NoReturn:
    import ctypes

    ctypes.string_at(0)
    raise AssertionError("address 0 could be read")
