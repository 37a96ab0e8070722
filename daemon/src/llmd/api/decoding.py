"""Makes types ready to be decoded in any thread."""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_prepared: set[object] = set()
_lock = threading.RLock()


@overload
def prepared(form: type[T]) -> type[T]: ...
@overload
def prepared(form: Any) -> Any: ...
def prepared(form: Any) -> Any:
    """Return a type for msgspec to decode, such as ``Struct`` or ``list[Struct]``, once its fields are known.

    msgspec collects the fields of a struct when it is first used, and runs Python meanwhile. If a second
    thread uses the struct before that has ended, the process crashes (msgspec 0.22). Therefore one thread at
    a time uses a type for the first time. Every type that msgspec decodes or converts to must come from here.
    """
    if form not in _prepared:
        with _lock:
            msgspec.msgpack.Decoder(form)
            _prepared.add(form)
    return form
