"""Uses libllmd from Python with ctypes alone, as an example of a binding.

Programs in Python are better served by ``llmd.Client``, which needs no library.

    python llmd_ctypes.py LIBRARY PROMPT [MODEL]
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_void_p
from types import TracebackType
from typing import Self

ABI_VERSION = 1
OK, CANCELLED = 0, 1
PIECE_TEXT, PIECE_REASONING, PIECE_TOOL_CALL, PIECE_FINISH, PIECE_USAGE = range(1, 6)
ON_PIECE = CFUNCTYPE(c_int, c_void_p, c_int, POINTER(ctypes.c_char), c_size_t)

# Result and arguments of each function that is used. Handles are c_void_p: a plain int would lose half of its
# bits.
SIGNATURES = {
    "llmd_open_abi": (c_int, [c_int, POINTER(c_void_p)]),
    "llmd_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "llmd_connect": (c_int, [c_void_p]),
    "llmd_message": (c_char_p, [c_void_p]),
    "llmd_hint": (c_char_p, [c_void_p]),
    "llmd_close": (None, [c_void_p]),
    "llmd_request_new": (c_int, [c_void_p, POINTER(c_void_p)]),
    "llmd_request_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "llmd_add_message": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "llmd_chat": (c_int, [c_void_p, ON_PIECE, c_void_p]),
    "llmd_finish_reason": (c_char_p, [c_void_p]),
    "llmd_answer_tokens": (c_size_t, [c_void_p]),
    "llmd_request_message": (c_char_p, [c_void_p]),
    "llmd_request_hint": (c_char_p, [c_void_p]),
    "llmd_request_free": (None, [c_void_p]),
}


class LlmdError(Exception):
    """A call failed. ``status`` is one of ``LLMD_…``, ``hint`` says what to do."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


def load_library(path: str) -> ctypes.CDLL:
    """Load the library and declare its functions."""
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Daemon:
    """A running daemon, and a context manager that closes the handle."""

    def __init__(self, library: ctypes.CDLL, address: str = "") -> None:
        self.lib = library
        self.handle = c_void_p()
        if library.llmd_open_abi(ABI_VERSION, ctypes.byref(self.handle)) != OK:
            raise LlmdError(3, "the library has another ABI version", "update this file")
        if address:
            self.check(library.llmd_set(self.handle, b"address", *_text(address)))
        self.check(library.llmd_connect(self.handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lib.llmd_close(self.handle)

    def check(self, status: int) -> None:
        """Raise the error that the handle describes, unless the call succeeded."""
        if status != OK:
            message, hint = self.lib.llmd_message(self.handle), self.lib.llmd_hint(self.handle)
            raise LlmdError(status, message.decode(), hint.decode())

    def chat(self, prompt: str, on_piece: Callable[[int, str], bool], **options: str) -> str:
        """Answer a prompt; returns why the answer ended. A piece for which ``on_piece`` is false ends it."""
        library, request, thrown = self.lib, c_void_p(), []
        self.check(library.llmd_request_new(self.handle, ctypes.byref(request)))

        def called(_user: object, kind: int, text: ctypes.Array[ctypes.c_char], length: int) -> int:
            try:  # no exception can pass through the library
                return 0 if on_piece(kind, ctypes.string_at(text, length).decode()) else 1
            except BaseException as error:  # noqa: BLE001 - raised again below
                thrown.append(error)
                return 1

        try:
            status = library.llmd_add_message(request, b"user", *_text(prompt))
            for name, value in options.items():
                status = status or library.llmd_request_set(request, name.encode(), *_text(value))
            status = status or library.llmd_chat(request, ON_PIECE(called), None)
            if thrown:
                raise thrown[0]
            if status not in {OK, CANCELLED}:
                message, hint = library.llmd_request_message(request), library.llmd_request_hint(request)
                raise LlmdError(status, message.decode(), hint.decode())
            return "cancelled" if status == CANCELLED else str(library.llmd_finish_reason(request).decode())
        finally:
            library.llmd_request_free(request)


def _text(text: str) -> tuple[bytes, int]:
    """Return a text as the library takes it: bytes of UTF-8 with their number."""
    encoded = text.encode()
    return encoded, len(encoded)


def main() -> None:
    """Print an answer."""
    path, prompt, *model = sys.argv[1:]

    def show(kind: int, text: str) -> bool:
        if kind == PIECE_TEXT:
            print(text, end="", flush=True)
        return True

    with Daemon(load_library(path)) as daemon:
        options = {"model": model[0]} if model else {}
        reason = daemon.chat(prompt, show, max_tokens="200", **options)
    print(f"\n({reason})")


if __name__ == "__main__":
    main()
