"""A plugin for a future contract version: its hooks must not be called."""

from __future__ import annotations

from typing import NoReturn

from llmd.api import hookimpl

LLMD_API = 99


@hookimpl
def llmd_backends() -> NoReturn:
    raise AssertionError("this hook means something else in contract 99")
