"""Calls the store in a thread of its own, so that a slow disk never stops the interface."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.chats import ChatStore

P = ParamSpec("P")
T = TypeVar("T")


class BackgroundStore:
    """Does one call after the other, in the order in which they were asked for."""

    def __init__(self, opened: Callable[[], ChatStore], fallback: Callable[[], ChatStore]) -> None:
        """``fallback`` makes the store to use if the first one cannot be opened."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chats")
        self._failure = ""
        self._store: ChatStore
        self._is_closed = False
        self._opening = self._thread.submit(self._open, opened, fallback)

    async def failure(self) -> str:
        """Return in words why the chats cannot be kept; empty: they are."""
        await asyncio.wrap_future(self._opening)
        return self._failure

    async def call(
        self, method: Callable[Concatenate[ChatStore, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a method of the store.

        Raises:
            LlmdError: it failed, or the store is closed.
        """
        if self._is_closed:
            raise LlmdError("the chats are closed")
        future = self._thread.submit(lambda: method(self._store, *args, **kwargs))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Do all that was asked for, and close the database."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.submit(self._end)
            self._thread.shutdown(wait=True)

    def _end(self) -> None:
        self._store.close()

    def _open(self, opened: Callable[[], ChatStore], fallback: Callable[[], ChatStore]) -> None:
        try:
            self._store = opened()
        except LlmdError as error:
            self._failure = str(error)
            self._store = fallback()
