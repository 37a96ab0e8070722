"""Ends a daemon when the program that started it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PORTION = 4096


@contextmanager
def end_with_input(shut_down: Callable[[], None]) -> Iterator[None]:
    """End a daemon at once when standard input ends; called on the event loop.

    ``shut_down`` is called twice, as by a second signal: nobody is left who waits for answers.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(stdin, PORTION):
            loop.remove_reader(stdin)
            shut_down()
            shut_down()

    try:
        loop.add_reader(stdin, read)
    except PermissionError:  # a file, or /dev/null: nobody is there who could end
        shut_down()
    try:
        yield
    finally:
        loop.remove_reader(stdin)
